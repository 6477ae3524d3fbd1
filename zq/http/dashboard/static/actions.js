// What changes jobs. Each dialog shows the command and the curl that it stands for.

import { copyButton, el, fill, number } from "./dom.js";
import { Refusal, ask, get, query, send } from "./net.js";

/** @typedef {{title: string, say: string, button: string, zq?: string, method: string,
 *   path: string, body?: unknown, typed?: string, each?: string[], save?: string, done: (answer: any) => string, asks?: [string, string][],
 *   filled?: (values: any) => {zq?: string, path?: string, body?: unknown}}} Plan `asks` has fields, and `filled` what they change. */

/** What a look ahead has seen. @typedef {{count: number, many: string, upto: string, bound: string}} Seen */

/** What the server lets this visitor do. */
export const rights = { scopes: /** @type {string[]} */ ([]), masked: false, name: "", url: "", queues: /** @type {string[]} */ ([]) };

/** @param {string} scope */
export const may = (scope) => rights.scopes.includes(scope);

/** How many jobs may be deleted without typing. */
export const MOST_UNTYPED = 100;

/** @param {string} text */
export const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** A line of `zq` that names this server. @param {string} line */
const onServer = (line) => (rights.url ? `${line} --url ${quoted(rights.url)}` : line);

/** A line that does so for each queue. @param {Plan} plan @param {string} line */
const looped = (plan, line) => ((plan.each?.length ?? 0) > 1
  ? `for queue in ${plan.each?.map(quoted).join(" ")}; do ${line}; done` : line);

/** @param {Plan} plan */
function curl(plan) {
  const url = new URL(`api/${plan.path}`, document.baseURI).href;
  if ((plan.each?.length ?? 0) > 1) {
    return looped({ ...plan, each: plan.each?.map(encodeURIComponent) }, `curl -X ${plan.method} "${url}" -H 'Content-Type: application/json' -d ${
      quoted(JSON.stringify(plan.body))}`);
  }
  const body = plan.body === undefined ? ""
    : ` -H 'Content-Type: application/json' -d ${quoted(JSON.stringify(plan.body))}`;
  return `curl -X ${plan.method} ${quoted(url)}${body}`;
}

/** @param {string} name @param {string} line */
const stands = (name, line) => el("div", { class: "stands" }, el("span", {}, name),
  el("code", {}, line), copyButton("Copy", () => line));

/** A dialog that closes and goes away by Escape too. @param {string} title @param {...any} parts */
export function dialog(title, ...parts) {
  const back = /** @type {HTMLElement | null} */ (document.activeElement);
  const box = /** @type {HTMLDialogElement} */ (
    el("dialog", { "aria-labelledby": "dialog-title" }, el("h2", { id: "dialog-title" }, title), parts));
  box.addEventListener("close", () => {
    box.remove();
    back?.focus();
  });
  document.body.append(box);
  box.showModal();
  return box;
}

/** Ask, do, and say what was done. @param {Plan} plan @param {() => void} [after] */
export function confirm(plan, after) {
  const said = el("p", { role: "status" });
  const go = el("button", { type: "submit", class: "go", disabled: Boolean(plan.typed) }, plan.button);
  const typed = plan.typed && el("label", {}, `Type ${plan.typed} to go on `,
    el("input", { name: "typed", autocomplete: "off", oninput: (/** @type {any} */ event) => {
      go.disabled = event.target.value !== plan.typed;
    } }));
  const lines = el("div");
  const tell = () => {
    lines.replaceChildren();
    fill(lines, plan.zq && stands("zq", looped(plan, onServer(plan.zq))), stands("curl", curl(plan)));
  };
  const asked = (plan.asks ?? []).map(([name, label]) => el("label", {}, `${label} `,
    el("input", { name, autocomplete: "off", oninput: () => {
      Object.assign(plan, plan.filled?.(Object.fromEntries(new FormData(/** @type {HTMLFormElement} */ (form)))));
      tell();
    } })));
  tell();
  const form = el("form", { onsubmit: async (/** @type {Event} */ event) => {
    event.preventDefault();
    go.disabled = true;
    try {
      let answer;
      if (plan.save) save(plan.save, await (await ask(`api/${plan.path}`, { method: plan.method })).blob());
      else for (const name of plan.each ?? [""]) {
        answer = await send(plan.method, plan.path.replace("$queue", encodeURIComponent(name)), plan.body);
      }
      said.textContent = plan.done(answer);
      go.remove();
      after?.();
    } catch (error) {
      go.disabled = false;
      said.textContent = error instanceof Refusal ? `Refused: ${error.message}` : String(error);
    }
  } }, asked, typed, said, el("p", { class: "buttons" },
    el("button", { type: "button", onclick: () => box.close() }, "Close"), go));
  const box = dialog(plan.title, el("p", {}, plan.say), lines, form);
}

/** Have the browser store a file. @param {string} name @param {Blob} content */
export function save(name, content) {
  const link = el("a", { href: URL.createObjectURL(content), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}

/** @param {string} scope @param {string} label @param {() => void} onclick */
export const actionButton = (scope, label, onclick) =>
  (may(scope) ? el("button", { type: "button", "data-scope": scope, onclick }, label) : null);

/** @param {any} job @param {() => void} after */
export function jobActions(job, after) {
  const id = encodeURIComponent(job.id);
  const open = ["ready", "scheduled", "in_flight"].includes(job.status);
  const force = job.status === "in_flight";
  return el("p", { class: "buttons" },
    job.status === "dead" && actionButton("manage", "Requeue…", () => confirm({
      title: "Requeue this job", say: "It is ready at once, with its attempts anew.", button: "Requeue",
      zq: `zq requeue ${job.id}`, method: "POST", path: `jobs/${id}/requeue`,
      done: (answer) => `The job is ${answer.status}.`,
    }, after)),
    ["ready", "scheduled"].includes(job.status) && actionButton("manage", "Move…", () => move(job, after)),
    open && actionButton("manage", "Cancel…", () => confirm({
      title: "Cancel this job",
      say: force ? "Its worker is told to stop. What it has done is not undone."
        : "It will not run. It is kept for as long as its retention says.",
      button: "Cancel the job", zq: `zq cancel ${job.id}${force ? " --force" : ""}`,
      method: "POST", path: `jobs/${id}/cancel`, body: force ? { force: true } : {},
      done: () => "The job is cancelled.",
    }, after)),
    actionButton("manage", "Delete…", () => confirm({
      title: "Delete this job", say: "It is gone for good, with its errors.", button: "Delete",
      zq: `zq delete ${job.id}`, method: "DELETE", path: `jobs/${id}`, done: () => "The job is deleted.",
    }, after)));
}

/** Another queue, another priority, or another time. @param {any} job @param {() => void} after */
const move = (job, after) => confirm({
  title: "Move this job", say: `It is in ${job.queue} with the priority ${job.priority}; lower ones come first. What stays empty stays as it is.`,
  asks: [["queue", "Queue"], ["priority", "Priority"], ["minutes", "Minutes until it is ready; 0 for now"]],
  filled: ({ queue, priority, minutes }) => ({ zq: `zq change ${job.id}${queue && ` --queue ${quoted(queue)} --create`}${
    priority && ` --priority ${quoted(priority)}`}${minutes && ` --delay ${quoted(minutes)}m`}`, body: { ...queue && { queue }, ...priority && { priority: Number(priority) },
    ...minutes && { ready_at: Math.round(Date.now() + Number(minutes) * 60_000) } } }),
  button: "Move", method: "PATCH", path: `jobs/${encodeURIComponent(job.id)}`, body: {},
  done: (changed) => `The job is ${changed.status} in ${changed.queue}.`,
}, after);

/** The option of a filter, and its value: that of the filter, if it is not another one.
 * @param {string} name @param {string} value */
function optionOf(name, value) {
  if (name !== "ready_at") return ` --${name === "budgets.key" ? "budget" : name} ${quoted(value)}`;
  const [low, high] = value.includes("..") ? value.split("..") : [value, value];
  return (low && ` --ready-after ${moment(low)}`) + (high && ` --ready-before ${moment(high)}`);
}

/** @param {string} ms */
const moment = (ms) => new Date(Number(ms)).toISOString();

/** The command for a change by filter.
 * @param {string} command @param {Record<string, string>} filter @param {string} upto */
const commandOf = (command, filter, upto) =>
  `zq ${command}${Object.entries(filter).map(([name, value]) => optionOf(name, value)).join("")} --upto ${upto} --yes`;

/** The part of a plan that asks for a reason. @param {string} zq @param {string} path
 * @returns {Pick<Plan, "zq" | "path" | "asks" | "filled">} */
const because = (zq, path) => ({ zq, path, asks: [["reason", "Reason"]], filled: ({ reason }) => ({
  zq: zq + (reason && ` --reason ${quoted(reason)}`),
  path: path + (reason && `&reason=${encodeURIComponent(reason)}`) }) });

/**
 * Actions on all jobs that match a filter. What is counted is what the filter says.
 * @param {Record<string, string>} filter
 * @param {() => void} after
 */
export function filterActions(filter, after) {
  const status = filter.status ?? "";
  return el("p", { class: "buttons" },
    status === "dead" && filterButton("requeue", "Requeue all that match…", filter, after),
    ["ready", "scheduled"].includes(status) && filterButton("cancel", "Cancel all that match…", filter, after),
    Object.keys(filter).length > 0 && filterButton("delete", "Delete all that match…", filter, after));
}

/** A button that looks ahead, and binds the change to what was seen.
 * @param {"requeue" | "cancel" | "delete"} verb @param {string} label
 * @param {Record<string, string>} filter @param {() => void} after */
export const filterButton = (verb, label, filter, after) => actionButton("manage", label, async () => {
  try {
    const { count, exact, upto } = await get(`sweeps/preview${query({ ...filter, verb })}`);
    const many = `${exact ? "" : "at least "}${number(count)}`;
    confirm(PLANS[verb](filter, { count, many, upto, bound: query({ ...filter, upto }) }), after);
  } catch (error) {
    dialog("This cannot be looked at", el("p", { role: "alert" }, /** @type {Error} */ (error).message),
      el("form", { method: "dialog" }, el("button", {}, "Close")));
  }
});

/** @param {Record<string, string>} filter @param {Seen} now */
function bounds(filter, now) {
  const words = Object.entries(filter).map(([name, value]) => `${name}:${value}`).join(" ") || "all jobs";
  return `Those that match now, up to the id ${now.upto}, and none that arrive later: ${words}`;
}

/** What each change by filter asks for. @type {Record<string, (filter: Record<string, string>, now: Seen) => Plan>} */
const PLANS = {
  requeue: (filter, now) => ({
    title: `Requeue ${now.many} dead jobs`, say: bounds(filter, now), button: `Requeue ${now.many} jobs`, method: "POST",
    ...because(commandOf("requeue", filter, now.upto), `jobs/requeue${now.bound}`),
    body: {}, done: (answer) => `${number(answer.requeued)} jobs are ready again.`,
  }),
  cancel: (filter, now) => ({
    title: `Cancel ${now.many} jobs`, say: `${bounds(filter, now)}. The page Sweeps can take them back.`,
    button: `Cancel ${now.many} jobs`, method: "POST",
    ...because(commandOf("cancel", filter, now.upto), `jobs/cancel${now.bound}`),
    body: {}, done: (answer) => `${number(answer.cancelled)} jobs are cancelled.`,
  }),
  delete: (filter, now) => ({
    title: `Delete ${now.many} jobs`, say: `For good. ${bounds(filter, now)}`,
    button: `Delete ${now.many} jobs`, method: "DELETE",
    ...because(commandOf("delete", filter, now.upto), `jobs${now.bound}`),
    typed: now.count > MOST_UNTYPED ? filter.queue ?? "delete" : undefined,
    done: (answer) => `${number(answer.deleted)} jobs are deleted.`,
  }),
};

/** @param {string} queue @param {boolean} paused @param {() => void} [after] */
export const pauseButton = (queue, paused, after) => pauseMany([queue], paused, after);

/** The change of one queue, or of several by a loop. @param {string[]} queues @param {boolean} paused @param {() => void} [after] */
export function pauseMany(queues, paused, after) {
  const verb = paused ? "Resume" : "Pause";
  const many = queues.length > 1;
  const command = `zq ${verb.toLowerCase()} ${many ? '"$queue"' : quoted(queues[0])}`;
  return actionButton("manage", `${verb}…`, () => confirm({
    title: many ? `${verb} ${number(queues.length)} queues` : `${verb} ${queues[0]}`, each: queues,
    say: `${many ? `${queues.join(", ")}. Their` : "Its"} jobs are ${paused ? "delivered again." : "not delivered. Jobs in flight go on."}`,
    asks: paused ? [] : [["reason", "Reason"], ["minutes", "Minutes, or nothing until it is resumed"]],
    filled: ({ reason, minutes }) => ({
      zq: command + (minutes && ` --for ${minutes}m`) + (reason && ` --reason ${quoted(reason)}`),
      body: { paused: true, pause_reason: reason || null,
        paused_until: Number(minutes) ? Math.round(Date.now() + Number(minutes) * 60_000) : null } }),
    button: verb, zq: command, method: "PATCH",
    path: `queues/${many ? "$queue" : encodeURIComponent(queues[0])}/settings`, body: { paused: paused ? null : true },
    done: () => `${many ? `${number(queues.length)} queues are` : "The queue is"} ${paused ? "delivered again" : "paused"}.`,
  }, after));
}

const KEYS = [
  ["/", "find a job"], ["g o", "Overview"], ["g q", "Queues"], ["g j", "Jobs"], ["g f", "Failures"],
  ["g s", "Schedules"], ["g w", "Workers"], ["g b", "Budgets"], ["g e", "Sweeps"], ["g h", "Health"],
  ["g a", "Audit"],
  ["j k", "next and previous row"], ["Enter", "open the row"], ["x", "select the row"],
  ["r", "requeue"], ["p", "pause updates"], ["t", "theme"], ["z", "zone"], ["?", "this help"],
];

const EVERY = [1, 2, 5, 10, 30, 60];

/** @param {boolean} on @param {(on: boolean) => void} change
 * @param {number} every Seconds. @param {(every: number) => void} pace */
export function help(on, change, every, pace) {
  const box = dialog("Settings and keys", el("p", {}, el("label", {}, "New numbers every ", el("select", {
    onchange: (/** @type {any} */ event) => pace(Number(event.target.value)) }, EVERY.map((each) =>
    el("option", { value: each, selected: each === every }, `${each} s`))))), el("dl", { class: "facts" }, KEYS.map(([key, text]) =>
    el("div", {}, el("dt", {}, el("kbd", {}, key)), el("dd", {}, text)))));
  fill(box, el("p", {}, el("label", {}, el("input", { type: "checkbox", checked: on,
    onchange: (/** @type {any} */ event) => change(event.target.checked) }), " Keys are on")),
    el("p", { class: "buttons" }, el("button", { type: "button", onclick: () => box.close() }, "Close")));
}
