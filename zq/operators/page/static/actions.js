// What changes jobs, and the dialog that asks first: what will happen, to how many, and the way back.

import { clock, el, number, plain, show } from "./dom.js";
import { Field } from "./fields.js";
import { lineOf } from "./filter.js";
import { Refusal, ask, get, query, send, serverNow, textOf } from "./net.js";
import { button, copied, dialog, iconButton, menu, meter, name, pill, short, toast } from "./parts.js";
import { may, rights } from "./rights.js";

export { may, rights };

/** @typedef {import("./dom.js").Child} Child */
/** @typedef {import("./fields.js").FieldPlan} FieldPlan */
/** What a dialog asks for, and does. `fields` are read into `filled`, which says what they change. `queue` names the queue that must exist.
 * `each` are queues, with a request for each. `bound` is what binds the page's own request to what it has shown. `undo` is called by the toast's button.
 * @typedef {{title: string, say: Child | Child[], parts?: Child[], button: string, keep?: string, destroys?: boolean, typed?: string,
 *   zq?: string, method: string, path: string, bound?: string, body?: unknown, fields?: FieldPlan[], each?: string[], save?: string,
 *   filled?: (values: any) => {zq?: string, path?: string, body?: unknown}, queue?: (values: any) => string | null,
 *   done: (answer: any) => string, undo?: (answers: any[]) => Promise<any>, undoable?: (answers: any[]) => boolean}} Plan */

/** What a look ahead has seen: how many jobs, up to which one, and how many of each queue and status.
 * @typedef {{count: number, exact: boolean, upto: string, by?: {queue: string, status: string, n: number}[], more?: number, no_effect?: number}} Seen
 * `more` places of a queue and a status are left out of `by`. */

/** How many jobs may be deleted without typing. */
export const MOST_UNTYPED = 100;

// Commands

/** A word of a shell, in which nothing is hidden. @param {string} text */
export function quoted(text) {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  return plain(text) === text ? `'${text.replaceAll("'", "'\\''")}'` : `$'${plain(text.replace(/[\\']/g, "\\$&"))}'`;
}

/** A line of `zq` that names this server. @param {string} line */
const onServer = (line) => (rights.url ? `${line} --url ${quoted(rights.url)}` : line);

/** The request as a line of curl: it names this server, and has a place for the key where one is needed.
 * @param {string} method @param {string} path @param {unknown} [body] @param {string} [base] Where the API is, if not below the page. */
export function curlOf(method, path, body, base = new URL("api", document.baseURI).href) {
  const url = path.includes("$queue") ? `"${base}/${path}"` : quoted(`${base}/${path}`);
  return [`curl${method === "GET" ? "" : ` -X ${method}`} ${url}`, rights.name && '-H "Authorization: Bearer $ZQ_TOKEN"',
    body !== undefined && `-H 'Content-Type: application/json' -d ${quoted(textOf(body))}`].filter(Boolean).join(" ");
}

/** The line for each of several queues. @param {Plan} plan @param {string} line @param {(queue: string) => string} write */
const looped = (plan, line, write) => ((plan.each?.length ?? 0) > 1 ? `for queue in ${plan.each?.map(write).join(" ")}; do ${line}; done` : line);

/** The command that a plan stands for, and the request. @param {Plan} plan @returns {[string, string][]} */
const linesOf = (plan) => [...plan.zq ? [/** @type {[string, string]} */ (["zq", looped(plan, onServer(plan.zq), quoted)])] : [],
  ["curl", looped(plan, curlOf(plan.method, plan.path, plan.body, (plan.bound && rights.url) || undefined), encodeURIComponent)]];

/** @param {[string, string]} line */
const commandLine = ([tool, text]) => el("div", { class: "stands" }, el("pre", { class: "code", role: "group", tabindex: "0", "aria-label": tool }, el("code", {}, text)),
  iconButton("copy", `Copy the line of ${tool}`, () => copied(text, "The line is copied.")));

// The dialog

/** Ask, do, and say what was done. @param {Plan} plan @param {() => void} [after] */
export function confirm(plan, after) {
  const commands = el("div", { class: "sheet" });
  const question = el("div");
  const go = button(plan.button, () => (plan.destroys ? act() : undefined),
    { type: plan.destroys ? "button" : "submit", class: plan.destroys ? "destroy solid" : "solid", "data-go": "" });
  const fields = (plan.fields ?? []).map((each) => new Field({ stays: true, ...each }, () => heard()));
  const typed = plan.typed ? el("input", { id: "typed", autocomplete: "off", spellcheck: "false", oninput: () => heard() }) : null;
  /** The name that nobody knows, and with which the one who asks goes on. */
  let accepted = "";

  const values = () => Object.fromEntries(fields.map((each) => [each.plan.name, each.value]));
  const isOff = () => fields.some((each) => each.wrong) || (typed && typed.value !== plan.typed);
  function heard() {
    go.disabled = Boolean(isOff());
    if (fields.some((each) => each.wrong)) return;
    Object.assign(plan, plan.filled?.(values()));
    show(commands, linesOf(plan).map(commandLine));
  }

  /** Whether there is the queue that is meant. @returns {Promise<boolean>} */
  async function isKnown() {
    const queue = plan.queue?.(values());
    if (!queue || queue === accepted) return true;
    const { known, near } = await nearTo(queue);
    if (known) return true;
    accepted = queue;
    question.replaceChildren(el("div", { class: "banner", role: "alert" }, el("span", {}, `There is no queue “${plain(queue)}” yet. `,
      near.length ? "Did you mean " : "Press the button once more to begin it.", near.map((each, at) => [at ? ", " : "",
        button(plain(each), () => take(each), { class: "small" })]).flat(), near.length ? "? Once more begins a new queue." : null)));
    return false;
  }
  /** @param {string} queue */
  function take(queue) {
    const field = fields.find((each) => each.plan.name === "queue");
    if (field) field.box.value = queue;
    question.replaceChildren();
    field?.check(true, heard);
  }

  async function act() {
    // Whatever has sent the form: what was not typed is not done.
    if (isOff() || !fields.every((each) => each.ready())) return;
    box.refuse("");
    go.disabled = true;
    /** @type {any[]} */
    const answers = [];
    try {
      if (!await isKnown()) {
        go.disabled = false;
        return;
      }
      // A time from now on counts from here.
      Object.assign(plan, plan.filled?.(values()));
      if (plan.save) save(plan.save, await (await ask(`api/${plan.path}`, { method: plan.method })).blob());
      else {
        for (const each of plan.each ?? [""]) {
          answers.push(await send(plan.method, `${plan.path.replace("$queue", encodeURIComponent(each))}${plan.bound ?? ""}${typed ? `&typed=${encodeURIComponent(typed.value)}` : ""}`, plan.body));
        }
      }
      box.close();
      told(plan, answers, after);
      after?.();
    } catch (error) {
      go.disabled = false;
      const [count, stopped] = [plan.each?.length ?? 0, plan.each?.[answers.length]];
      if (answers.length && stopped !== undefined) {
        box.close();
        told({ ...plan, done: () => `${number(answers.length)} of ${number(count)} queues are done. At ${stopped}: ${refusal(error)}` }, answers, after, { failed: true });
        after?.();
      } else if (box.open) box.refuse(refusal(error));
      else toast(refusal(error), { failed: true });
    }
  }

  const box = dialog({ title: plan.title, say: plan.say, destroys: plan.destroys, keep: plan.keep, act: () => (plan.destroys ? undefined : act()), buttons: [go],
    parts: [...plan.parts ?? [], question,
      typed || fields.length ? el("div", { class: "part stack fields" }, typed && el("div", { class: "field" },
        el("label", { for: "typed" }, "Type ", el("b", {}, plain(plan.typed ?? "")), plan.typed === "delete" ? " to go on" : ", the name of the queue"), typed),
      fields.map((each) => each.place)) : null,
      el("div", { class: "part" }, el("details", {}, el("summary", {}, "The same as a command"), commands))] });
  heard();
  return box;
}

/** @param {unknown} error */
const refusal = (error) => (error instanceof Refusal ? `Refused: ${error.message}` : String(error));

/** Say what was done, and offer the way back. @param {Pick<Plan, "done" | "undo" | "undoable">} plan @param {any[]} answers @param {() => void} [after] @param {{failed?: boolean}} [look] */
function told(plan, answers, after, look = {}) {
  const { undo } = plan;
  toast(plan.done(answers.at(-1)), undo && (plan.undoable?.(answers) ?? true) ? { ...look, button: ["Undo", async () => {
    try {
      const text = await undo(answers);
      toast(typeof text === "string" ? text : "It is taken back.");
      after?.();
    } catch (error) {
      toast(`Not taken back: ${/** @type {Error} */ (error).message}`, { failed: true });
    }
  }] } : look);
}

/** Have the browser store a file. @param {string} file @param {Blob} content */
export function save(file, content) {
  const link = el("a", { href: URL.createObjectURL(content), download: file });
  link.click();
  URL.revokeObjectURL(link.href);
}

/** A button for those who have the right. @param {string} scope @param {string} label @param {() => void} act @param {Record<string, any>} [more] */
export const actionButton = (scope, label, act, more) => (may(scope) ? button(label, act, { "data-scope": scope, ...more }) : null);

/** Whether there is a queue of this name, and those that are called nearly so. @param {string} queue
 * @returns {Promise<{known: boolean, near: string[]}>} */
export async function nearTo(queue) {
  try {
    return await get(`queues/${encodeURIComponent(queue)}/near`);
  } catch (error) {
    if (error instanceof Refusal && error.status === 404) return { known: true, near: [] };
    throw error;
  }
}

// One job

/** @param {any} job */
const waits = (job) => ["ready", "scheduled"].includes(job.status);
/** @param {any} job */
const pathOf = (job) => `jobs/${encodeURIComponent(job.id)}`;
/** @param {any} job */
const called = (job) => `Job ${short(job.id)} of ${job.queue}`;

/** Do at once what needs no question, and tell. @param {Plan} plan @param {() => void} after @param {string} not What it is if it is refused. */
async function atOnce(plan, after, not) {
  try {
    told(plan, [await send(plan.method, plan.path, plan.body)], after);
  } catch (error) {
    toast(`${not}: ${/** @type {Error} */ (error).message}`, { failed: true });
  }
  after();
}

/** What can be done with one job: the label, what it is called for, and the act. The first helps most; what cannot be undone comes last.
 * @param {any} job @param {() => void} after
 * @returns {{verb: string, label: string, act: () => void, look?: string}[]} */
export const verbsOf = (job, after) => (!may("manage") ? [] : [
  job.status === "dead" && { verb: "requeue", label: "Requeue", look: "solid", act: () => atOnce(requeuePlan(job), after, "Not requeued") },
  waits(job) && { verb: "cancel", label: "Cancel", act: () => atOnce(cancelPlan(job), after, "Not cancelled") },
  job.status === "in_flight" && { verb: "cancel", label: "Cancel…", act: () => confirm(cancelPlan(job), after) },
  waits(job) && { verb: "move", label: "Move…", act: () => move(job, after) },
  { verb: "delete", label: "Delete…", look: "destroy", act: () => deleteOne(job, after) },
].filter((each) => each !== false));

/** @param {any} job @returns {Plan} */
const requeuePlan = (job) => ({ title: "Requeue this job", say: "", button: "Requeue", method: "POST", path: `${pathOf(job)}/requeue`,
  done: () => `${called(job)} is ready again.` });

/** @param {any} job @returns {Plan} */
const cancelPlan = (job) => ({
  title: "Cancel this job?", say: "Its worker is told to stop. What it has done is not undone.", button: "Cancel the job", keep: "Let it run",
  zq: `zq cancel ${job.id} --force`, method: "POST", path: `${pathOf(job)}/cancel`, body: job.status === "in_flight" ? { force: true } : {},
  done: () => `${called(job)} is cancelled.`, undo: undoSweep, undoable: ([answer]) => Boolean(answer.undo),
});

/** @param {any} job @param {() => void} after */
const deleteOne = (job, after) => {
  const box = confirm({
    title: `Delete job ${short(job.id)} of ${job.queue}?`, destroys: true, keep: "Keep the job", button: "Delete 1 job",
    say: [`Deletes 1 ${job.status.replace("_", " ")} job. It is gone `, el("b", {}, "for good"), ", with its payload, result and errors. A deletion cannot be taken back."],
    parts: waits(job) ? [instead("It waits to run.", "Cancel it instead", () => {
      box.close();
      atOnce(cancelPlan(job), after, "Not cancelled");
    })] : [],
    zq: `zq delete ${job.id}`, method: "DELETE", path: pathOf(job), done: () => `${called(job)} is deleted.`,
  }, after);
};

/** The way that can be undone. @param {string} text @param {string} label @param {() => void} act */
const instead = (text, label, act) => el("div", { class: "banner" }, el("span", {}, `${text} `, el("b", {}, "Cancel"), " can be undone."),
  el("span", { class: "push" }, button(label, act, { class: "small" })));

/** The fields of another place for jobs. @type {FieldPlan[]} */
const PLACE = [{ name: "queue", label: "Queue", kind: "text", placeholder: "stays where it is" },
  { name: "priority", label: "Priority", kind: "whole", placeholder: "stays", help: "0 to 65535; lower ones come first" },
  { name: "delay", label: "Ready in", kind: "duration", placeholder: "stays", help: (ms) => (ms === null ? "such as 90 min; 0 s is now" : null) }];

/** @param {any} values */
const placeOf = ({ queue, priority, delay }) => ({ ...queue && { queue }, ...priority !== null && { priority },
  ...delay !== null && { ready_at: Math.round(serverNow() + delay) } });

/** @param {any} values */
const placeWords = ({ queue, priority, delay }) => `${queue ? ` --queue ${quoted(queue)} --create` : ""}${
  priority === null ? "" : ` --priority ${priority}`}${delay === null ? "" : ` --delay ${Math.round(delay / 1000)}s`}`;

/** Another queue, another priority, or another time. @param {any} job @param {() => void} after */
const move = (job, after) => confirm({
  title: `Move job ${short(job.id)}`, say: `It is in ${job.queue} with the priority ${job.priority}. What stays empty stays as it is.`,
  fields: PLACE, queue: ({ queue }) => queue, filled: (values) => ({ zq: `zq change ${job.id}${placeWords(values)}`, body: placeOf(values) }),
  button: "Move", method: "PATCH", path: pathOf(job), body: {},
  done: (changed) => `${called(job)} is ${changed.status} in ${changed.queue}.`,
}, after);

/** The verbs of a job for its row: the one that helps, and the others behind ⋯.
 * @param {any} job @param {() => void} after */
export function rowActions(job, after) {
  const verbs = verbsOf(job, after);
  const [first] = verbs;
  const id = short(job.id);
  return [first && first.verb !== "delete" ? button(first.label, first.act, { class: "small", "aria-label": `${first.label} ${id}`, "data-verb": first.verb, "data-scope": "manage" }) : null,
    " ", menu(`More for ${id}`, [...verbs.map(({ label, act }) => /** @type {[string, () => void, string]} */ ([label, act, "manage"])),
      ["Copy the id", () => copied(job.id, "The id is copied.")],
      ["Copy as curl", () => copied(curlOf("GET", pathOf(job)), "The line is copied.")]])].flat();
}

// Many jobs

/** The parameters of a filter, none of which may be empty: an address or a field without its name never means all jobs.
 * @param {Record<string, string | undefined>} filter */
export function exactly(filter) {
  const lost = Object.entries(filter).find(([, value]) => typeof value !== "string" || !value.trim());
  if (lost) throw new Error(`The filter has no value for ${lost[0]}: nothing is done.`);
  if (!Object.keys(filter).length) throw new Error("There is no filter: nothing is done.");
  return filter;
}

/** The option of a filter, and its value. @param {string} option @param {string} value */
function optionOf(option, value) {
  if (option !== "ready_at") return ` --${option === "budgets.key" ? "budget" : option} ${quoted(value)}`;
  const [low, high] = value.includes("..") ? value.split("..") : [value, value];
  return (low && ` --ready-after ${moment(low)}`) + (high && ` --ready-before ${moment(high)}`);
}

/** @param {string} ms */
const moment = (ms) => new Date(Number(ms)).toISOString();

/** The command for a change by filter. @param {string} command @param {Record<string, string>} filter @param {Seen} now */
const commandOf = (command, filter, now) =>
  `zq ${command}${Object.entries(filter).map(([option, value]) => optionOf(option, value)).join("")} --upto ${now.upto} --yes`;

/** The field for a reason, and what it changes. @param {string} zq @param {string} path @returns {Pick<Plan, "zq" | "path" | "fields" | "filled">} */
const because = (zq, path) => ({ zq, path, fields: [{ name: "reason", label: "Reason, for Activity", kind: "text", placeholder: "optional" }],
  filled: ({ reason }) => ({ zq: zq + (reason ? ` --reason ${quoted(reason)}` : ""), path: path + (reason ? `&reason=${encodeURIComponent(reason)}` : "") }) });

/** @param {Seen} now */
export const many = (now) => `${now.exact ? "" : "over "}${number(now.count)}`;
/** @param {Seen} now */
const jobs = (now) => `${many(now)} ${now.exact && now.count === 1 ? "job" : "jobs"}`;

/** The counts by one field, most first. @param {Seen} now @param {"queue" | "status"} field @returns {[string, number][]} */
export function countsBy(now, field) {
  const sums = /** @type {Map<string, number>} */ (new Map());
  for (const each of now.by ?? []) sums.set(each[field], (sums.get(each[field]) ?? 0) + each.n);
  return [...sums].sort(([, one], [, other]) => other - one);
}

/** Of which queues: `of mail`, `of mail and sms`, `of 7 queues`. @param {Record<string, string>} filter @param {Seen} now */
function ofQueues(filter, now) {
  const queues = now.by ? countsBy(now, "queue").map(([queue]) => queue) : filter.queue?.split(",") ?? [];
  if (!queues.length) return "";
  return ` of ${queues.length < 3 ? queues.join(" and ") : `${number(queues.length)} queues`}`;
}

/** `4,902 completed, 212 ready, 45 dead`. @param {Seen} now */
const statuses = (now) => countsBy(now, "status").map(([status, n]) => `${number(n)} ${status.replace("_", " ")}`).join(", ");

const LOST = /** @type {Record<string, Child>} */ ({ completed: "their results", dead: "work that failed, and why", cancelled: "what could be taken back",
  expired: "work that came too late", ready: "work that never ran", scheduled: "work that never ran", in_flight: "work that runs now" });
const WORK = ["ready", "scheduled", "in_flight"];

/** How many of each status, or of each queue, and what that means. @param {Seen} now @param {"queue" | "status"} field @param {boolean} lost */
function lossTable(now, field, lost) {
  const counts = countsBy(now, field);
  const heads = [[field, "w9"], ["jobs", "num w4"], ["share", "share c1"], ...lost ? [["what is lost", ""]] : []];
  return el("div", { class: "wide" }, el("table", { class: "loss noheads" }, el("caption", { class: "spoken" }, `Jobs by ${field}`),
    el("thead", {}, el("tr", {}, heads.map(([head, is]) => el("th", { scope: "col", class: is }, el("span", { class: "spoken" }, head))))),
    el("tbody", {}, counts.slice(0, MOST_LINES).map(([each, n]) => el("tr", {}, el("th", { scope: "row" }, field === "status" ? pill(each) : name(each)),
      el("td", { class: "num" }, number(n)), el("td", { class: "share c1" }, meter(n, now.count + 1, `${Math.round((100 * n) / now.count)} %`)),
      lost && el("td", { class: "muted" }, WORK.includes(each) ? el("b", { class: "warn" }, LOST[each]) : LOST[each]))))),
  counts.length > MOST_LINES && el("p", { class: "part muted" }, `and ${number(counts.length - MOST_LINES)} more`));
}
const MOST_LINES = 7;

/** What binds a change to the look ahead: more jobs than were shown are not changed. @param {Seen} now */
const boundTo = (now) => `&count=${now.count}`;

/** What a change by filter is about: how many of what, up to which job. @param {Record<string, string>} filter @param {Seen} now @param {boolean} [lost] */
function about(filter, now, lost = false) {
  const queues = countsBy(now, "queue").length;
  return [lost && now.by?.length ? lossTable(now, "status", true) : null,
    queues > 1 ? lossTable(now, "queue", false) : null,
    el("div", { class: "part" }, el("p", { class: "muted" }, `Counted at ${clock(serverNow())}`, filter.id ? ". Those that are ticked, and no other. "
      : [", up to the job ", el("span", { class: "id", title: now.upto }, short(now.upto)), ". Jobs that come later stay. Filter: ", el("code", {}, plain(lineOf(filter))), " "],
    now.no_effect ? `${number(now.no_effect)} others that match stay as they are.` : null))];
}

/** What the server would do now. @param {string} verb @param {Record<string, string>} filter @returns {Promise<Seen>} */
export const lookAhead = (verb, filter) => get(`sweeps/preview${query({ ...exactly(filter), verb })}`);

/** Why jobs of a change stay as they were. */
export const WHY = /** @type {Record<string, string>} */ ({ key_taken: "another job has their unique key",
  expired: "their time to live is over", budget_gone: "a budget is gone or too small",
  queue_full: "their queue is full", schema_mismatch: "they do not match the schema of their queue" });

/** @param {Record<string, number>} [kept] */
const stayed = (kept = {}) => Object.entries(kept).map(([why, n]) => ` ${number(n)} stay: ${WHY[why] ?? why}.`).join("");

/** Take back the jobs that a sweep has cancelled, and tell. @param {any[]} answers */
async function undoSweep(answers) {
  const { undone, kept = {}, gone } = await send("POST", `sweeps/${answers[0].undo}/undo`);
  const stay = Object.values(kept).reduce((/** @type {number} */ sum, n) => sum + n, 0);
  return [`${number(undone)} ${undone === 1 ? "job waits" : "jobs wait"} again.`, stay ? `${number(stay)} stay cancelled: Activity says why.` : "",
    gone ? `${number(gone)} are no longer stored.` : ""].filter(Boolean).join(" ");
}

/** What each change by filter asks for.
 * @type {Record<string, (filter: Record<string, string>, now: Seen, after: () => void) => Plan & {swap?: () => void}>} */
const PLANS = {
  requeue: (filter, now) => ({
    title: `Requeue ${jobs(now)}${ofQueues(filter, now)}?`, button: `Requeue ${jobs(now)}`, method: "POST", body: {},
    say: `Requeues ${jobs(now)}${ofQueues(filter, now)}${countsBy(now, "status").length > 1 ? `: ${statuses(now)}` : ""}. Each is ready at once, in the queue where it died, and may be tried as often as a new one.`,
    parts: about(filter, now), bound: boundTo(now), ...because(commandOf("requeue", filter, now), `jobs/requeue${query({ ...filter, upto: now.upto })}`),
    done: ({ requeued, kept }) => `${number(requeued)} ${requeued === 1 ? "job is" : "jobs are"} ready again.${stayed(kept)}`,
  }),
  cancel: (filter, now) => ({
    title: `Cancel ${jobs(now)}${ofQueues(filter, now)}?`, button: `Cancel ${jobs(now)}`, keep: "Let them run", method: "POST", body: {},
    say: `Cancels ${jobs(now)}${ofQueues(filter, now)}${now.by ? `: ${statuses(now)}` : ""}. They do not run, and are kept for as long as their retention says. It can be undone, here and in Activity.`,
    parts: about(filter, now), bound: boundTo(now), ...because(commandOf("cancel", filter, now), `jobs/cancel${query({ ...filter, upto: now.upto })}`),
    done: ({ cancelled }) => `${number(cancelled)} ${cancelled === 1 ? "job" : "jobs"}${ofQueues(filter, now)} ${cancelled === 1 ? "is" : "are"} cancelled.`,
    undo: undoSweep, undoable: ([answer]) => Boolean(answer.undo),
  }),
  patch: (filter, now) => ({
    title: `Move ${jobs(now)}${ofQueues(filter, now)}`, button: `Move ${jobs(now)}`, method: "PATCH", body: {}, path: `jobs${query({ ...filter, upto: now.upto })}`,
    say: [`Moves ${jobs(now)}${ofQueues(filter, now)}. What stays empty stays as it is. `, "A move of many cannot be undone: where each was is not kept."], parts: about(filter, now), bound: boundTo(now), fields: PLACE, queue: ({ queue }) => queue,
    filled: (values) => ({ body: placeOf(values), ...filter.id && { zq: `zq change ${filter.id.replaceAll(",", " ")}${placeWords(values)}` } }),
    done: ({ patched, kept }) => `${number(patched)} ${patched === 1 ? "job is" : "jobs are"} moved.${stayed(kept)}`,
  }),
  delete: (filter, now, after) => {
    const waiting = countsBy(now, "status").filter(([status]) => ["ready", "scheduled"].includes(status)).reduce((sum, [, n]) => sum + n, 0);
    return {
      title: `Delete ${jobs(now)}${ofQueues(filter, now)}?`, button: `Delete ${jobs(now)}`, keep: "Keep the jobs", destroys: true, method: "DELETE",
      say: [`Deletes ${jobs(now)}${ofQueues(filter, now)}${now.by ? `: ${statuses(now)}` : ""}. They are gone `, el("b", {}, "for good"), ", with their payloads, results and errors. A deletion cannot be taken back."],
      parts: [...about(filter, now, true), waiting ? instead(`${number(waiting)} ${waiting === 1 ? "waits" : "wait"} to run.`, `Cancel ${number(waiting)} instead…`, () => {
        /** @type {any} */ (document.querySelector("dialog[open]"))?.close();
        sweep("cancel", { ...filter, status: waitingOf(filter), upto: now.upto }, after);
      }) : null],
      bound: boundTo(now), ...because(commandOf("delete", filter, now), `jobs${query({ ...filter, upto: now.upto })}`),
      typed: now.count > MOST_UNTYPED || !now.exact ? typedFor(now) : undefined,
      done: ({ deleted }) => `${number(deleted)} ${deleted === 1 ? "job is" : "jobs are"} deleted.`,
    };
  },
};

/** The statuses of a filter in which jobs wait. @param {Record<string, string>} filter */
const waitingOf = (filter) => (filter.status ?? "ready,scheduled").split(",").filter((status) => ["ready", "scheduled"].includes(status)).join(",");

/** What is typed before many jobs are deleted: the queue, if they are of one. @param {Seen} now */
function typedFor(now) {
  const [[queue] = ["delete"], another] = countsBy(now, "queue");
  return another ? "delete" : queue;
}

/** Look ahead, ask, and change what was seen and nothing else.
 * @param {"requeue" | "cancel" | "delete" | "patch"} verb @param {Record<string, string>} filter @param {() => void} after */
export async function sweep(verb, filter, after) {
  try {
    const now = await lookAhead(verb, filter);
    const { upto: _upto, ...rest } = filter;
    if (now.exact && !now.count) toast("No job matches any more that this would change.");
    else confirm(PLANS[verb](rest, now, after), after);
  } catch (error) {
    toast(`Not looked at: ${/** @type {Error} */ (error).message}`, { failed: true });
  }
}


/** A button that looks ahead and asks. @param {"requeue" | "cancel" | "delete" | "patch"} verb @param {string} label
 * @param {Record<string, string>} filter @param {() => void} after @param {Record<string, any>} [more] */
export const filterButton = (verb, label, filter, after, more) =>
  actionButton("manage", label, () => sweep(verb, filter, after), { "data-verb": verb === "patch" ? "move" : verb, ...verb === "delete" && { class: "destroy" }, ...more });

/** What may be done with many jobs, by how many there are of each status: only what changes some of them.
 * @param {[string, number][]} counts @param {Record<string, string>} filter @param {() => void} after @param {{all?: boolean, small?: boolean, partly?: boolean}} [look] With `partly` there may be more of each than that. */
export function filterButtons(counts, filter, after, { all = false, small = false, partly = false } = {}) {
  const sum = (/** @type {string[]} */ of) => counts.reduce((n, [status, each]) => n + (of.includes(status) ? each : 0), 0);
  const total = sum(counts.map(([status]) => status));
  const label = (/** @type {string} */ word, /** @type {number} */ n, /** @type {string} */ of) =>
    `${word} ${n === total ? `${all ? "all" : ""}${partly ? "" : ` ${number(n)}`}`.trim() : `${partly ? "all" : number(n)} ${of}`}…`;
  const size = small ? "small " : "";
  const [dead, waiting] = [sum(["dead"]), sum(["ready", "scheduled"])];
  return [dead ? filterButton("requeue", label("Requeue", dead, "dead"), filter, after, { class: `${size}${small ? "" : "solid"}` }) : null,
    waiting ? filterButton("cancel", label("Cancel", waiting, "waiting"), { ...filter, status: waitingOf(filter) }, after, { class: size }) : null,
    waiting ? filterButton("patch", label("Move", waiting, "waiting"), { ...filter, status: waitingOf(filter) }, after, { class: size }) : null,
    total ? filterButton("delete", label("Delete", total, ""), filter, after, { class: `${size}destroy` }) : null].filter(Boolean);
}
