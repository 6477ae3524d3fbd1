// What changes jobs. Each dialog shows the command and the curl that it stands for.

import { copyButton, el, fill, number } from "./dom.js";
import { Refusal, get, query, send } from "./net.js";

/** @typedef {{title: string, say: string, button: string, zq?: string, method: string,
 *   path: string, body?: unknown, typed?: string, done: (answer: any) => string, asks?: [string, string][],
 *   filled?: (values: any) => {zq?: string, path?: string, body?: unknown}}} Plan `asks` has fields, and `filled` what they change. */

/** What a look ahead has seen. @typedef {{count: number, many: string, upto: string, bound: string}} Seen */

/** What the server lets this visitor do. */
export const rights = { scopes: /** @type {string[]} */ ([]), masked: false };

/** @param {string} scope */
export const may = (scope) => rights.scopes.includes(scope);

/** How many jobs may be deleted without typing. */
export const MOST_UNTYPED = 100;

/** @param {string} text */
export const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** @param {Plan} plan */
function curl(plan) {
  const url = new URL(`api/${plan.path}`, document.baseURI).href;
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
    fill(lines, plan.zq && stands("zq", plan.zq), stands("curl", curl(plan)));
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
      said.textContent = plan.done(await send(plan.method, plan.path, plan.body));
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

/** @param {string} scope @param {string} label @param {() => void} onclick */
export const actionButton = (scope, label, onclick) =>
  (may(scope) ? el("button", { type: "button", "data-scope": scope, onclick }, label) : null);

/** @param {any} job @param {() => void} after */
export function jobActions(job, after) {
  const id = encodeURIComponent(job.id);
  const open = ["ready", "scheduled", "in_flight"].includes(job.status);
  const force = job.status === "in_flight";
  return el("p", { class: "buttons" },
    job.status === "dead" && actionButton("manage", "Retry…", () => confirm({
      title: "Retry this job", say: "It is ready at once, with its attempts anew.", button: "Retry",
      zq: `zq requeue ${job.id}`, method: "POST", path: `jobs/${id}/retry`,
      done: (answer) => `The job is ${answer.status}.`,
    }, after)),
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
      method: "DELETE", path: `jobs/${id}`, done: () => "The job is deleted.",
    }, after)));
}

const FLAGS = /** @type {Record<string, string>} */ ({ status: "status", queue: "queue", type: "type",
  filter: "filter", error: "error", "budgets.key": "budget" });

/** The command for a change by filter, if it has options for all of the filter.
 * @param {string} command @param {Record<string, string>} filter @param {string} upto */
function commandOf(command, filter, upto) {
  const given = Object.entries(filter);
  if (!given.every(([name]) => name in FLAGS)) return undefined;
  return `zq ${command}${given.map(([name, value]) => ` --${FLAGS[name]} ${quoted(value)}`).join("")} --upto ${upto} --yes`;
}

/** The part of a plan that asks for a reason. @param {string | undefined} zq @param {string} path
 * @returns {Pick<Plan, "zq" | "path" | "asks" | "filled">} */
const because = (zq, path) => ({ zq, path, asks: [["reason", "Reason"]], filled: ({ reason }) => ({
  zq: zq && zq + (reason && ` --reason ${quoted(reason)}`),
  path: path + (reason && `&reason=${encodeURIComponent(reason)}`) }) });

/**
 * Actions on all jobs that match a filter. What is counted is what the filter says.
 * @param {Record<string, string>} filter
 * @param {() => void} after
 */
export function filterActions(filter, after) {
  /** Look ahead, and bind the change to what was seen.
   * @param {string} verb @param {(seen: Seen) => void} go */
  const seen = async (verb, go) => {
    const { count, exact, upto } = await get(`sweeps/preview${query({ ...filter, verb })}`);
    const many = `${exact ? "" : "at least "}${number(count)}`;
    go({ count, many, upto, bound: query({ ...filter, upto }) });
  };
  const bounds = (/** @type {Seen} */ { upto }) =>
    `Those that match now, up to the id ${upto}, and none that arrive later: ${words}`;
  const status = filter.status ?? "";
  const words = Object.entries(filter).map(([name, value]) => `${name}:${value}`).join(" ") || "all jobs";
  return el("p", { class: "buttons" },
    status === "dead" && actionButton("manage", "Retry all that match…", () => seen("redrive", (now) => confirm({
      title: `Retry ${now.many} dead jobs`, say: bounds(now),
      button: `Retry ${now.many} jobs`, method: "POST",
      ...because(commandOf("requeue", filter, now.upto), `jobs/redrive${now.bound}`),
      body: {}, done: (answer) => `${number(answer.redriven)} jobs are ready again.`,
    }, after))),
    ["ready", "scheduled"].includes(status) && actionButton("manage", "Cancel all that match…",
      () => seen("cancel", (now) => confirm({
        title: `Cancel ${now.many} jobs`, say: `${bounds(now)}. The page Sweeps can take them back.`,
        button: `Cancel ${now.many} jobs`, method: "POST",
        ...because(commandOf("cancel", filter, now.upto), `jobs/cancel${now.bound}`),
        body: {}, done: (answer) => `${number(answer.cancelled)} jobs are cancelled.`,
      }, after))),
    Object.keys(filter).length > 0 && actionButton("manage", "Delete all that match…",
      () => seen("delete", (now) => confirm({
        title: `Delete ${now.many} jobs`, say: `For good. ${bounds(now)}`,
        button: `Delete ${now.many} jobs`, method: "DELETE", ...because(undefined, `jobs${now.bound}`),
        typed: now.count > MOST_UNTYPED ? filter.queue ?? "delete" : undefined,
        done: (answer) => `${number(answer.deleted)} jobs are deleted.`,
      }, after))));
}

/** @param {string} queue @param {boolean} paused @param {() => void} [after] */
export function pauseButton(queue, paused, after) {
  const verb = paused ? "Resume" : "Pause";
  const command = `zq ${verb.toLowerCase()} ${quoted(queue)}`;
  return actionButton("manage", `${verb}…`, () => confirm({
    title: `${verb} ${queue}`,
    say: paused ? "Its jobs are delivered again." : "Its jobs are not delivered. Jobs in flight go on.",
    asks: paused ? [] : [["reason", "Reason"], ["minutes", "Minutes, or nothing until it is resumed"]],
    filled: ({ reason, minutes }) => ({
      zq: command + (minutes && ` --for ${minutes}m`) + (reason && ` --reason ${quoted(reason)}`),
      body: { paused: true, pause_reason: reason || null,
        paused_until: Number(minutes) ? Math.round(Date.now() + Number(minutes) * 60_000) : null } }),
    button: verb, zq: command, method: "PATCH",
    path: `queues/${encodeURIComponent(queue)}/settings`, body: { paused: paused ? null : true },
    done: () => `The queue is ${paused ? "delivered again" : "paused"}.`,
  }, after));
}

const KEYS = [
  ["/", "find a job"], ["g o", "Overview"], ["g q", "Queues"], ["g j", "Jobs"], ["g f", "Failures"],
  ["g s", "Schedules"], ["g w", "Workers"], ["g b", "Budgets"], ["g e", "Sweeps"], ["g h", "Health"],
  ["g a", "Audit"],
  ["j k", "next and previous row"], ["Enter", "open the row"], ["x", "select the row"],
  ["r", "retry"], ["p", "pause updates"], ["t", "theme"], ["z", "zone"], ["?", "this help"],
];

/** @param {boolean} on @param {(on: boolean) => void} change */
export function help(on, change) {
  const box = dialog("Keys", el("dl", { class: "facts" }, KEYS.map(([key, text]) =>
    el("div", {}, el("dt", {}, el("kbd", {}, key)), el("dd", {}, text)))));
  fill(box, el("p", {}, el("label", {}, el("input", { type: "checkbox", checked: on,
    onchange: (/** @type {any} */ event) => change(event.target.checked) }), " Keys are on")),
    el("p", { class: "buttons" }, el("button", { type: "button", onclick: () => box.close() }, "Close")));
}
