// Activity: what operators have done, in words, the changes of many jobs that run, and the way back.

import { WHY, actionButton, confirm, may, quoted, save } from "./actions.js";
import { Asked } from "./asked.js";
import { ago, el, number, plain, show } from "./dom.js";
import { ask, get, query, serverNow } from "./net.js";
import { button, card, empty, meter, name, pill, queueName, table } from "./parts.js";
import { commandOf } from "./queue_settings.js";

const PAGE = 50;
const LINES = 1000;
const HOUR_MS = 3_600_000;

/** What may be asked for: the words of the list, and what they mean to the server. */
const VERBS = { "": "anything", settings: "set queues", pause: "pause", resume: "resume", cancel: "cancel", requeue: "requeue", delete: "delete", change: "move or change", undo: "undo", stop: "stop sweeps",
  budget: "budgets", producer: "producers", schema: "schemas", drop: "drop workers", reveal: "reveal", mark: "mark", backup: "back up" };
const SINCE = { "": "ever", "1h": "the last hour", "24h": "the last day", "7d": "the last week" };
const SPANS = /** @type {Record<string, number>} */ ({ "1h": HOUR_MS, "24h": 24 * HOUR_MS, "7d": 168 * HOUR_MS });

/** @param {Element} main @param {URLSearchParams} values @param {(place: string) => void} go */
export function activity(main, values, go) {
  const filter = Object.fromEntries(["who", "verb", "queue", "since"].map((key) => [key, values.get(key) ?? ""]));
  const running = el("div");
  let known = "";
  let most = PAGE;
  const done = new Asked(() => actionTable(filter, most, () => {
    most += PAGE;
    done.again();
  }, () => all()));
  const ended = new Asked(() => endedTable(() => all()));
  const all = () => [done, ended].forEach((each) => each.again());
  main.append(el("div", { class: "bar" }, el("h1", {}, "Activity"), filterForm(filter, (next) => go(`activity${query(next)}`)),
    el("span", { class: "push" }, button("Save all as NDJSON", saveAll))), running,
  card("What was done", ["the latest first, ", done.age], done.place),
  card("Changes of many jobs", ["that have ended, ", ended.age], ended.place));
  return { view: { topic: "sweeps" }, draw: (/** @type {any} */ doc, /** @type {number} */ at) => {
    done.draw();
    ended.draw();
    show(running, doc.sweeps.length > 0 && card("Under way", `${number(doc.sweeps.length)}`, runningTable(doc.sweeps, at)));
    const ids = doc.sweeps.map((/** @type {any} */ sweep) => sweep.id).join(" ");
    if (ids !== known && known !== "") all();
    known = ids || "none";
  } };
}

/** @param {Record<string, string>} filter @param {(next: Record<string, string>) => void} turn */
function filterForm(filter, turn) {
  const choice = (/** @type {string} */ key, /** @type {string} */ label, /** @type {Record<string, string>} */ words) => el("label", { class: "bar" }, label,
    el("select", { name: key, onchange: (/** @type {any} */ event) => event.target.form.requestSubmit() },
      Object.entries(words).map(([value, word]) => el("option", { value, selected: value === filter[key] }, word))));
  return el("form", { class: "bar query", role: "search", onsubmit: (/** @type {any} */ event) => {
    event.preventDefault();
    turn(/** @type {any} */ (Object.fromEntries(new FormData(event.target))));
  } }, el("input", { name: "who", value: filter.who, "aria-label": "Who", placeholder: "who", autocomplete: "off", size: 12 }),
  choice("verb", "did", VERBS),
  el("input", { name: "queue", value: filter.queue, "aria-label": "Queue", placeholder: "in any queue", autocomplete: "off", size: 14 }),
  choice("since", "in", SINCE), el("button", { class: "btn" }, "Show"));
}

/** @param {Record<string, string>} filter @param {number} most @param {() => void} more @param {() => void} after */
async function actionTable(filter, most, more, after) {
  const { since, ...named } = filter;
  const now = serverNow();
  const actions = await actionsOf({ ...named, since: since && now - SPANS[since] }, most);
  const given = Object.values(filter).some(Boolean);
  return [table({ caption: "What operators have done, the latest first",
    columns: [{ head: "ago", is: "num w5" }, { head: "who", is: "w9 c1" }, { head: "what" }, { head: "from", is: "w9 c3" }, { spoken: "actions", is: "do wact" }],
    rows: actions.map((/** @type {any} */ each) => ({ key: String(each.seq), cells: [ago(each.at, now),
      name(each.actor ?? each.address), said(each), el("span", { class: "muted" }, each.address), wayBack(each, after)] })),
    nothing: given ? empty("No such action", "Nobody has done that, or it was longer ago. ", el("a", { href: "#/activity" }, "All actions"))
      : empty("No operator has done anything", "Whatever is changed here, by command or by the API stands in this list.") }),
  actions.length === most && el("div", { class: "foot" }, el("span", {}, `The latest ${number(most)}`), el("span", { class: "push" }, button("Earlier actions", more)))];
}

/** So many actions, the latest first: one request has up to `LINES`. @param {Record<string, any>} asked @param {number} most */
export async function actionsOf(asked, most) {
  const found = /** @type {any[]} */ ([]);
  for (let before; found.length < most;) {
    const limit = Math.min(LINES, most - found.length);
    const page = await get(`audit${query({ ...asked, before, limit })}`);
    found.push(...page.actions);
    // A search that has looked at many actions breaks off, and goes on from there.
    before = page.searched_to ?? (page.actions.length === limit ? page.actions[limit - 1].seq : undefined);
    if (before === undefined) break;
  }
  return found;
}

/** An action in words, with the request as its title. @param {any} action */
const said = ({ words, actor, address, method, path, query: asked, status }) => {
  const request = `${method} ${path}${asked ? `?${asked}` : ""} → ${status}`;
  const text = plain(words ?? request);
  // Who has done it stands beside it.
  const who = `${actor ? plain(actor) : `somebody at ${address}`} `;
  return el("span", { class: "cut", title: request }, text.startsWith(who) ? text.slice(who.length) : text);
};

/** The way back from an action, where there is one. @param {any} action @param {() => void} after */
function wayBack(action, after) {
  const sweep = action.undo ?? action.sweep ?? action.answer?.undo;
  if (sweep) return undoButton(String(sweep), `action ${action.seq}`, after);
  const [of] = action.queues ?? [];
  if (!action.before || !of) return null;
  return actionButton("manage", "Undo…", () => confirm({
    title: `Set ${of} back`, say: `${Object.entries(action.before).map(([key, value]) => `${key}: ${value === null ? "not set" : JSON.stringify(value)}`).join(", ")}.`
      + " Later changes of these settings are lost.", button: "Set it back", zq: commandOf(of, action.before),
    method: "PATCH", path: `queues/${encodeURIComponent(of)}/settings`, body: action.before, done: () => `The settings of ${of} are as they were.` }, after), small(`Undo the change of ${of} (${action.seq})`));
}

/** What a button of a row looks like, and how it is called. @param {string} label */
const small = (label) => ({ class: "small keep", "aria-label": label });

// Changes of many jobs

/** @param {any} sweep */
const filterOf = (sweep) => Object.entries(sweep.by).map(([key, value]) => `${key}:${value}`).join(" ") || "all jobs";

/** Its filter as queues, and the rest in words. @param {any} sweep */
const about = (sweep) => (sweep.by.queue?.length === 1 && Object.keys(sweep.by).length === 1 ? queueName(sweep.by.queue[0]) : name(filterOf(sweep)));

/** @param {any[]} sweeps @param {number} now */
const runningTable = (sweeps, now) => table({ caption: "Changes under way",
  columns: [{ head: "what", is: "w9" }, { head: "jobs" }, { head: "who", is: "w9 c2" }, { head: "began", is: "num w5 c3" },
    { head: "changed", is: "num w7" }, { spoken: "share", is: "w6 c1" }, { spoken: "actions", is: "do wact" }],
  rows: sweeps.map((sweep) => ({ key: sweep.id, cells: [`${sweep.verb} ${sweep.id}`, about(sweep), name(sweep.actor ?? "–"), ago(sweep.started_at, now),
    `${number(sweep.changed)}${sweep.counted === undefined ? "" : ` of ${number(sweep.counted)}`}`,
    meter(sweep.progress, 1, `${Math.floor(sweep.progress * 100)} %`), stopButton(sweep)] })) });

/** @param {any} sweep */
const stopButton = (sweep) => actionButton("manage", "Stop…", () => confirm({
  title: `Stop sweep ${sweep.id}`, button: "Stop it", say: "What it has changed so far stays.",
  zq: `zq sweeps stop ${sweep.id}`, method: "DELETE", path: `sweeps/${sweep.id}`,
  done: () => "The sweep stops before its next slice.",
}), small(`Stop sweep ${sweep.id}`));

/** @param {() => void} after */
async function endedTable(after) {
  const { sweeps } = await get(`sweeps/ended?limit=${PAGE}`);
  const now = serverNow();
  return table({ caption: "Sweeps that have changed jobs, the latest first",
    columns: [{ head: "ago", is: "num w5" }, { head: "who", is: "w9 c1" }, { head: "what", is: "w9" }, { head: "jobs" },
      { head: "changed", is: "num w6" }, { head: "result", is: "w12 c3" }, { head: "reason", is: "c2" }, ...may("manage") ? [{ spoken: "actions", is: "do wact" }] : []],
    rows: sweeps.map((/** @type {any} */ sweep) => ({ key: sweep.id, cells: [ago(sweep.started_at, now), name(sweep.actor ?? "–"), `${sweep.verb} ${sweep.id}`,
      about(sweep), number(sweep.changed), result(sweep), name(sweep.reason ?? "–"),
      ...may("manage") ? [sweep.verb === "cancel" && sweep.undone < sweep.changed ? undoButton(sweep.id, `sweep ${sweep.id}`, after) : null] : []] })),
    nothing: empty("No sweep has changed jobs", "A sweep is a change of all jobs that match a filter: ", el("a", { href: "#/jobs" }, "begin one on Jobs"), ".") });
}

/** @param {any} sweep */
function result(sweep) {
  if (sweep.undone) return sweep.undone === sweep.changed ? "undone" : `${number(sweep.undone)} undone`;
  return sweep.state === "done" ? pill("completed", "done") : pill("paused", `stopped at ${Math.floor(sweep.progress * 100)} %`);
}

/** @param {string} id @param {string} key What tells the button apart. @param {() => void} after */
const undoButton = (id, key, after) => actionButton("manage", "Undo…", async () => undo(await get(`sweeps/${id}`), after), small(`Undo ${key}`));

/** @param {any} now What the server says of the sweep. @param {() => void} after */
function undo(now, after) {
  const zq = `zq sweeps undo ${now.id} --yes`;
  const path = `sweeps/${now.id}/undo`;
  const many = `${now.exact ? "" : "over "}${number(now.left)}`;
  confirm({
    title: `Undo sweep ${now.id}`, button: `Take ${many} jobs back`,
    say: `It has cancelled ${number(now.changed)} jobs, and ${many} of them are still there. They wait again in`
      + " their old places. One whose unique key was taken, or whose time is over, stays cancelled.",
    fields: [{ name: "reason", label: "Reason", kind: "text", stays: true }],
    filled: ({ reason }) => ({ zq: zq + (reason ? ` --reason ${quoted(reason)}` : ""), path: path + query({ reason: reason ?? "" }) }),
    zq, method: "POST", path,
    done: ({ undone, kept, gone }) => [`${number(undone)} jobs wait again.`,
      ...Object.entries(kept).map(([why, n]) => `${number(n)} stay cancelled: ${WHY[why] ?? why}.`),
      ...gone ? [`${number(gone)} are no longer stored.`] : []].join(" "),
  }, after);
}

/** Have the browser store all actions. @param {any} event */
async function saveAll(event) {
  const pressed = event.currentTarget;
  pressed.disabled = true;
  const parts = [];
  try {
    for (let before; ;) {
      const text = await (await ask(`api/audit${query({ before, limit: LINES })}`,
        { headers: { Accept: "application/x-ndjson" } })).text();
      parts.push(text);
      const lines = text.trimEnd().split("\n");
      if (lines.length < LINES) break;
      before = JSON.parse(lines[LINES - 1]).seq;
    }
    save("audit.ndjson", new Blob(parts, { type: "application/x-ndjson" }));
  } finally {
    pressed.disabled = false;
  }
}
