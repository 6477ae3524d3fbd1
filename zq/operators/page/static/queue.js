// A queue: its figures, why its jobs wait, what was, and its parts: jobs, types, workers, settings, schema, groups, a form.

import { actionButton, confirm, may, nearTo, quoted, sweep } from "./actions.js";
import { Asked } from "./asked.js";
import { History } from "./chart.js";
import { ago, el, long, number, plain, rate, show, time, told } from "./dom.js";
import { lineOf } from "./filter.js";
import { jobsPanel } from "./jobs.js";
import { Json, Refusal, ask, freshId, get, getText, query, serverNow } from "./net.js";
import { banner, button, copied, dialog, empty, iconButton, menu, meter, name, pill, segment, shortId, spark, table, tabs, tile, toast } from "./parts.js";
import { pauseButton } from "./pausing.js";
import { SettingsForm, commandOf } from "./queue_settings.js";
import { compact, printed, rawField } from "./raw.js";
import { STATES, percent } from "./overview.js";
import { MANY_FAIL, TypesTable } from "./types.js";
import { workerTable } from "./workers.js";

const GROUPS = 50;
const KEYS = 50;
/** The server counts no further. */
const MOST_BEHIND = 1000;

/** How its state looks, and its word. @param {any} row */
const stateOf = (row) => STATES[row.state || (row.paused ? "paused" : "")] ?? ["ok", "ok"];

/** @typedef {{queue: string, go: (place: string) => void, place: (tab: string) => string}} Of */
/** A tab: its element, and what is done with each frame. @typedef {{place: Element, draw?: (doc: any, at: number) => void}} Part */

/** @param {Element} main @param {URLSearchParams} values @param {(place: string) => void} go */
export function queue(main, values, go) {
  const of = values.get("name") ?? "";
  const tab = Object.hasOwn(PARTS, values.get("tab") ?? "") ? values.get("tab") ?? "" : "jobs";
  const place = (/** @type {string} */ to) => `queue${query({ name: of, tab: to })}`;
  const head = el("div", { class: "bar" });
  const unknown = el("div");
  const now = el("div");
  const why = el("div");
  const history = new History(of);
  const nav = el("div");
  const part = PARTS[tab]({ queue: of, go, place });
  main.append(head, unknown, now, why, el("div", { class: "bar" }, el("span", { class: "push" }, history.ranges)), history.place, el("section", { class: "card", "aria-label": "Parts of the queue" }, nav, part.place));
  if (tab === "settings" && values.get("field")) setTimeout(() => /** @type {any} */ (part).focus?.(values.get("field")));
  let asked = false;
  return { view: { topic: "queue", queue: of }, draw: (/** @type {any} */ doc, /** @type {number} */ at) => {
    const row = { ...doc.queue, ...doc.settings.paused && { paused: true } };
    show(head, headOf(of, row, doc, place));
    show(now, el("section", { class: "tiles", "aria-label": "Now" }, tiles(of, row, doc, at)));
    // On a queue that keeps up, jobs wait for moments: what was there once does not move the page up and down.
    show(why, why.childElementCount || doc.why?.ahead || row.paused ? whyOf(of, doc.why, row, at) : null);
    history.learn();
    show(nav, tabs("Parts of the queue", NAMES.map(([to, word]) => [to, word, countOf(to, row, doc)]), tab, place));
    part.draw?.(doc, at);
    if (!asked && !row.counts) tellUnknown(of, unknown);
    asked = true;
  } };
}

/** A name that no queue has. @param {string} of @param {Element} place */
async function tellUnknown(of, place) {
  const { known, near } = await nearTo(of);
  show(place, !known && banner(`There is no queue “${plain(of)}” yet.`, [near.length
    ? ["Did you mean ", near.map((each, at) => [at ? ", " : "", el("a", { href: `#/queue${query({ name: each })}` }, plain(each))]).flat(), "? "].flat() : [],
  "What is set here holds for the jobs that come under this name."].flat()));
}

/** @param {string} to @param {any} row @param {any} doc */
function countOf(to, row, doc) {
  const counts = Object.values(row.counts ?? {});
  if (to === "jobs") return counts.length ? number(counts.reduce((sum, n) => sum + n, 0)) : undefined;
  return to === "workers" && doc.workers.length ? number(doc.workers.length) : undefined;
}

/** @param {string} of @param {any} row @param {any} doc @param {(tab: string) => string} place */
const headOf = (of, row, doc, place) => [
  el("div", { class: "crumb" }, el("a", { href: "#/queues" }, "Queues"), el("span", { class: "muted", "aria-hidden": "true" }, "/"),
    el("h1", { class: "cut", title: plain(of) }, plain(of)), iconButton("copy", "Copy the name", () => copied(of, "The name is copied."))),
  // Both are always there: if one came or went, all buttons behind it would be made anew.
  el("span", { title: row.state_text ? plain(row.state_text) : null }, row.counts || row.paused ? pill(...stateOf(row)) : null),
  el("span", { class: "muted" }, row.pause ? told(row.pause.replace(/^paused ?/, "")) : null),
  el("span", { class: "push acts" }, pauseButton(of, Boolean(row.paused)), may("enqueue") && el("a", { class: "btn", href: `#/${place("enqueue")}` }, "Enqueue…"),
    menu(`More for ${of}`, [
      may("manage") && ["Cancel what waits…", () => sweep("cancel", { queue: of, status: "ready,scheduled" }, () => undefined)],
      may("manage") && ["Delete its dead jobs…", () => sweep("delete", { queue: of, status: "dead" }, () => undefined)],
      may("manage") && Object.keys(doc.settings).length > 0 && ["Delete its settings…", () => clearSettings(of, doc.settings)],
      ["Copy as command", () => copied(`zq queues ${quoted(of)}`, "The command is copied.")]]))];

/** @param {string} of @param {any} settings */
const clearSettings = (of, settings) => confirm({ title: `Delete the settings of ${of}`, button: "Delete the settings", method: "DELETE",
  say: `${Object.keys(settings).join(", ")}: the server's values hold instead, at once.`, path: `queues/${encodeURIComponent(of)}/settings`,
  zq: commandOf(of, Object.fromEntries(Object.keys(settings).map((key) => [key, null]))), done: () => `The settings of ${of} are deleted.` });

/** When nothing waits any more. @param {any} row @param {number} waiting */
function drained(row, waiting) {
  if (!waiting) return { value: "now", note: "nothing waits" };
  const ms = row.drained_ms ?? (row.growth < 0 ? (waiting / -row.growth) * 1000 : undefined);
  if (ms !== undefined) return { value: long(ms), note: "at this rate" };
  return row.growth === undefined ? { note: "" } : { value: "never", note: "at this rate", warn: true };
}

/** @param {string} of @param {any} row @param {any} doc @param {number} at */
function tiles(of, row, doc, at) {
  const counts = row.counts ?? {};
  const [waiting, runs, dead] = [counts.ready ?? 0, counts.in_flight ?? 0, counts.dead ?? 0];
  const done = row.done ?? row.completed;
  const limit = doc.settings.rate;
  const slots = row.slots ?? doc.workers.reduce((/** @type {number} */ sum, /** @type {any} */ each) => sum + each.concurrency, 0);
  const free = doc.why?.slots_free;
  const leaves = doc.why?.gates.some((/** @type {any} */ gate) => gate.kind === "leaves");
  const jobs = (/** @type {string} */ status) => `jobs${query({ f: lineOf({ status, queue: of }) })}`;
  const grows = row.growth > 0.05;
  return [
    tile({ label: "Waiting", value: number(waiting), place: jobs("ready"), warn: grows && waiting > 0,
      picture: row.line?.length > 1 ? spark(row.line, `Waiting over the last hour, now ${number(waiting)}`) : null,
      note: grows ? `+${rate(row.growth)}/s` : counts.scheduled ? `${number(counts.scheduled)} scheduled` : "" }),
    tile({ label: "Drained", ...drained(row, waiting) }),
    tile({ label: "Oldest", value: row.since ? long(at - row.since) : undefined, place: row.since ? jobs("ready") : undefined,
      note: row.since ? time(row.since) : waiting ? "all wait behind others of their groups" : "no job waits" }),
    limit ? tile({ label: "Rate", value: rate(done), unit: `of ${rate(limit)} /s`, warn: done >= limit * 0.95, picture: meter(done ?? 0, limit, `${rate(done)} of ${rate(limit)} a second`),
      note: done >= limit * 0.95 ? "the limit holds it" : row.arrived === undefined ? "" : `${rate(row.arrived)}/s come` })
      : tile({ label: "Done", value: rate(done), unit: "/s", note: row.arrived === undefined ? "" : `${rate(row.arrived)}/s come` }),
    tile({ label: "Running", value: number(runs), unit: doc.settings.concurrency ? `of ${number(doc.settings.concurrency)} at most` : slots ? `of ${number(slots)} slots` : "",
      place: `queue${query({ name: of, tab: "workers" })}`, picture: slots ? meter(runs, doc.settings.concurrency ?? slots) : null,
      bad: !doc.workers.length && waiting > 0 && !leaves, note: `${number(doc.workers.length)} ${doc.workers.length === 1 ? "worker" : "workers"}${free === undefined ? "" : `, ${number(free)} slots free`}` }),
    tile({ label: "Failed", value: row.failed_share === undefined ? rate(row.failed) : percent(row.failed_share).replace(" %", ""),
      unit: row.failed_share === undefined ? "/s" : "%", bad: row.failed_share >= MANY_FAIL, place: dead ? jobs("dead") : undefined, note: `${number(dead)} dead` }),
  ];
}

/** What would help, by the code of what holds the jobs: a word, and a place. @type {Record<string, (of: string) => [string, string]>} */
const REMEDIES = {
  rate: (of) => ["Set rate…", `queue${query({ name: of, tab: "settings", field: "rate" })}`],
  concurrency: (of) => ["Set limit…", `queue${query({ name: of, tab: "settings", field: "concurrency" })}`],
  budget: () => ["Budgets", `queues${query({ tab: "budgets" })}`],
  fair: (of) => ["Keys", `queue${query({ name: of, tab: "keys" })}`],
  group: (of) => ["Groups", `queue${query({ name: of, tab: "groups" })}`],
  leaves: () => ["Devices", "devices"],
  no_worker: (of) => ["Workers", `queue${query({ name: of, tab: "workers" })}`],
  workers_busy: (of) => ["Workers", `queue${query({ name: of, tab: "workers" })}`],
};

/** Why its jobs wait: what the server says of the queue, the strongest reason first.
 * @param {string} of @param {any} why @param {any} row @param {number} at */
function whyOf(of, why, row, at) {
  const [look] = stateOf(row);
  return el("section", { class: "card", "aria-label": "Why its jobs wait" }, el("ul", { class: "findings" },
    (why?.lines ?? []).map((/** @type {any} */ { text, remedy }, /** @type {number} */ n) => el("li", { class: n || look === "ok" ? "quiet" : look, "data-code": remedy },
      el("span", { class: "kind" }, n ? "And" : "Why"), el("span", { class: "cut", title: plain(text) }, told(plain(text))),
      n || !row.since ? el("time") : ago(row.since, at), el("span", { class: "acts" }, remedyOf(remedy, of, row))))));
}

/** @param {string | undefined} remedy @param {string} of @param {any} row */
function remedyOf(remedy, of, row) {
  if (remedy === "paused") return row.paused ? pauseButton(of, true, undefined, { class: "small", "aria-label": `Resume ${of}` }) : null;
  if (!remedy || !Object.hasOwn(REMEDIES, remedy)) return null;
  const [word, place] = REMEDIES[remedy](of);
  return el("a", { class: "btn small", href: `#/${place}` }, word);
}

// The parts

const NAMES = /** @type {[string, string][]} */ ([["jobs", "Jobs"], ["types", "Types"], ["workers", "Workers"], ["settings", "Settings"],
  ["schema", "Schema"], ["groups", "Groups"], ["keys", "Keys"], ["enqueue", "Enqueue"]]);

/** @type {Record<string, (of: Of) => Part>} */
const PARTS = { jobs: jobsPart, types: typesPart, workers: workersPart, settings: settingsPart, schema: schemaPart, groups: groupsPart, keys: keysPart, enqueue: enqueuePart };

/** @param {Of} of @returns {Part} */
function jobsPart({ queue: of }) {
  const body = el("div");
  const panel = jobsPanel(body, { queue: of });
  return { place: body, draw: (_doc, at) => panel.check(at) };
}

/** @param {Of} of @returns {Part} */
function typesPart({ queue: of }) {
  const types = new TypesTable(of);
  return { place: types.place, draw: () => types.draw() };
}

/** @param {Of} of @returns {Part} */
function workersPart({ queue: of }) {
  const body = el("div");
  return { place: body, draw: (doc, at) => show(body, workerTable(doc.workers, at, of)) };
}

/** @param {Of} of @returns {Part & {focus: (field: string) => void}} */
function settingsPart({ queue: of }) {
  const form = new SettingsForm(of);
  let wanted = "";
  return { place: form.place, focus: (field) => {
    wanted = field;
    if (form.known) form.focus(field);
  }, draw: (doc) => {
    const first = !form.known;
    form.follow({ row: doc.queue, settings: doc.settings, inherited: doc.inherited ?? {} });
    if (first && wanted) form.focus(wanted);
  } };
}

/** @param {Of} of @returns {Part} */
function schemaPart({ queue: of }) {
  const path = `queues/${encodeURIComponent(of)}/schema`;
  const asked = new Asked(async () => {
    let found = "";
    try {
      found = await getText(path);
    } catch (error) {
      if (!(error instanceof Refusal) || error.status !== 404) throw error;
    }
    const { version, updated_at } = JSON.parse(found || "{}");
    const schema = rawField(found, "schema") ?? '{"type": "record", "name": "Payload", "fields": []}';
    const drop = () => confirm({ title: `Remove the schema of ${of}`, say: "New jobs are no longer checked.",
      button: "Remove", zq: `zq schema ${quoted(of)} --remove`, method: "DELETE", path, done: () => "The schema is removed." }, () => asked.again());
    const buttons = may("manage") && el("span", { class: "push acts" }, button(found ? "Change schema…" : "Set a schema…", () => editSchema(of, path, schema, () => asked.again()), { "data-scope": "manage" }),
      found && button("Remove schema…", drop, { class: "destroy", "data-scope": "manage" }));
    return found
      ? el("div", { class: "body sheet" }, el("p", { class: "bar" }, "New jobs have to match version ", el("b", {}, number(version)), ", since ", time(updated_at), ". ", buttons),
        el("pre", { class: "code", tabindex: "0" }, printed(schema)))
      : el("div", { class: "body sheet" }, el("p", { class: "bar" }, "New jobs are not checked: the queue has no schema.", buttons));
  }, 30_000);
  return { place: asked.place, draw: () => asked.draw() };
}

/** @param {string} of @param {string} path @param {string} schema Its JSON. @param {() => void} after */
function editSchema(of, path, schema, after) {
  const text = el("textarea", { rows: 12, id: "schema-json", class: "mono", spellcheck: "false" }, el("pre", {}, printed(schema)).textContent);
  const box = dialog({ title: `Schema of ${of}`, say: "A schema of Avro. New jobs have to match it; those that are stored stay.",
    parts: [el("div", { class: "part stack" }, el("div", { class: "field" }, el("label", { for: "schema-json" }, "JSON"), text))],
    buttons: [el("button", { class: "btn solid" }, "Go on…")], act: () => {
      try {
        JSON.parse(text.value);
      } catch (error) {
        box.refuse(`This is no JSON: ${/** @type {Error} */ (error).message}`);
        return;
      }
      box.close();
      confirm({ title: `Change the schema of ${of}`, say: "New jobs that do not match are refused.", button: "Change", method: "PUT", path, body: new Json(`{"schema":${compact(text.value)}}`),
        zq: `printf '%s' ${quoted(compact(text.value))} | zq schema ${quoted(of)} --set -`, done: () => `New jobs of ${of} have to match this schema.` }, after);
    } });
}

/** @param {Of} of @returns {Part} */
function enqueuePart({ queue: of }) {
  if (!may("enqueue")) return { place: empty("Your key may not enqueue jobs", "It needs the scope enqueue.") };
  const said = el("output", { class: "help", role: "status" });
  /** Of what is filled in: another press, whose answer may have been lost, means the same job. */
  let dedupe = freshId();
  const refresh = () => {
    dedupe = freshId();
  };
  const send = actionButton("enqueue", "Enqueue", () => undefined, { type: "submit", class: "solid" });
  return { place: el("form", { class: "stack", oninput: refresh, onsubmit: async (/** @type {any} */ event) => {
    event.preventDefault();
    const form = event.target;
    said.className = "help";
    try {
      JSON.parse(form.payload.value);
      send.disabled = true;
      const text = `{"queue":${JSON.stringify(of)},"dedupe":${JSON.stringify(dedupe)},"type":${JSON.stringify(form.type.value)},"payload":${form.payload.value}}`;
      const reply = await ask("api/jobs", { method: "POST", body: text, headers: { "Content-Type": "application/json" } });
      const job = await reply.json();
      said.replaceChildren("Stored as ", ...shortId(job.id));
      form.payload.value = "";
      refresh();
    } catch (error) {
      said.className = "error";
      said.textContent = error instanceof SyntaxError ? `The payload is no JSON: ${error.message}` : /** @type {Error} */ (error).message;
    }
    send.disabled = false;
  } }, el("div", { class: "body fields one" }, el("div", { class: "field" }, el("label", { for: "new-type" }, "Type"), el("input", { id: "new-type", name: "type", required: true, autocomplete: "off" })),
    el("div", { class: "field" }, el("label", { for: "new-payload" }, "Payload (JSON)"), el("textarea", { id: "new-payload", name: "payload", rows: 6, required: true, class: "mono", spellcheck: "false" }))),
  el("div", { class: "foot" }, said, el("span", { class: "push" }, send))) };
}

/** @param {Of} of @returns {Part} */
function groupsPart({ queue: of }) {
  const jobs = el("div");
  let after = "";
  let grouped = /** @type {{check: (now: number) => void} | null} */ (null);
  const turn = (/** @type {string} */ next) => {
    after = next;
    asked.again();
  };
  const showJobs = (/** @type {string} */ group) => {
    jobs.replaceChildren();
    grouped = jobsPanel(jobs, { queue: of, group });
  };
  /** @type {Asked} */
  const asked = new Asked(async () => {
    const now = serverNow();
    const { groups } = await get(`queues/${encodeURIComponent(of)}/groups${query({ after, limit: GROUPS })}`);
    return [table({ caption: `Groups of ${of} with unfinished jobs, by name`,
      columns: [{ head: "group" }, { head: "has to end first", is: "w9" }, { head: "type", is: "w12 c3" }, { head: "status", is: "w8 st" },
        { head: "tries", is: "num w5 c4" }, { head: "since", is: "num w5 c2" }, { head: "behind it", is: "num w7" }, { spoken: "actions", is: "do wact" }],
      rows: groups.map((/** @type {any} */ each) => ({ key: each.group, cells: [name(each.group), shortId(each.open.id), name(each.open.type), pill(each.open.status),
        number(each.open.attempts), ago(each.open.dequeued_at ?? each.open.ready_at, now), each.behind < MOST_BEHIND ? number(each.behind) : `${number(each.behind)} or more`,
        button("Jobs", () => showJobs(each.group), { class: "small keep", "aria-label": `Jobs of the group ${each.group}` })] })),
      nothing: empty("No group has unfinished jobs", "Jobs of one group run one after another.") }),
    el("div", { class: "foot" }, asked.age, el("span", { class: "push acts" }, after && button("First groups", () => turn("")),
      groups.length === GROUPS && button("Next groups", () => turn(groups.at(-1).group))))];
  });
  return { place: el("div", {}, asked.place, jobs), draw: (_doc, at) => {
    asked.draw();
    grouped?.check(at);
  } };
}

/** What is set for a key, in words. @param {any} limit */
const limitText = (limit) => [limit?.weight && `weight ${number(limit.weight)}`, limit?.max_in_flight && `at most ${number(limit.max_in_flight)} in flight`,
  limit?.rate && `${rate(limit.rate)}/s`].filter(Boolean).join(", ");

/** The keys between which the queue is shared. @param {Of} of @returns {Part} */
function keysPart({ queue: of }) {
  let [order, from] = ["share", 0];
  const turn = (/** @type {string} */ by, /** @type {number} */ to) => {
    [order, from] = [by, to];
    asked.again();
  };
  /** @type {Asked} */
  const asked = new Asked(async () => {
    const now = serverNow();
    const doc = await get(`queues/${encodeURIComponent(of)}/fair${query({ order, from, limit: KEYS })}`);
    return [table({ caption: `Fair keys of ${of} with unfinished jobs`,
      columns: [{ head: "key" }, { head: "share", is: "num w5" }, { head: "behind", is: "num w7 c3" }, { head: "waiting", is: "num w7" },
        { head: "in flight", is: "num w7 c2" }, { head: "takes", is: "num w7 c4" }, { head: "oldest", is: "num w5" }, { head: "set", is: "w12 c4" }],
      rows: doc.keys.map((/** @type {any} */ each) => ({ key: each.key, cells: [name(each.key || "(no key)"), each.share === undefined ? "" : percent(each.share),
        long(each.behind_ms), number(each.waiting), number(each.in_flight), long(each.mean_ms), each.oldest_ready ? ago(each.oldest_ready, now) : "", limitText(each.limit)] })),
      nothing: empty("No fair key has unfinished jobs", "Jobs with a fair_key share the workers of their queue.") }),
    el("div", { class: "foot" }, asked.age, el("span", {}, `${number(doc.total)} ${doc.total === 1 ? "key" : "keys"}`), el("span", { class: "push acts" },
      segment("Order of the keys", ["share", "wait", "depth"], order, (by) => turn(by, 0), { share: "By turn", wait: "By wait", depth: "By depth" }), from > 0 && button("First keys", () => turn(order, 0)),
      doc.next && button("Next keys", () => turn(order, doc.next))))];
  });
  return { place: asked.place, draw: () => asked.draw() };
}
