// A queue: its jobs, workers, settings, schema and groups, and a form that enqueues.

import { actionButton, confirm, plainDialog as dialog, pauseButton, quoted } from "./actions.js";
import { History } from "./chart.js";
import { badge, el, facts, jobLink, link, number, rate, show, span, table, time, told } from "./dom.js";
import { jobsPanel } from "./jobs.js";
import { Refusal, ask, get, query } from "./net.js";
import { once, workerTable } from "./server.js";

/** Every setting of a queue: its unit and its meaning. */
const SETTINGS = {
  paused: "jobs are not delivered", max_depth: "most unfinished jobs", rate: "deliveries a second",
  concurrency: "jobs in flight at once", retry_limit: "retries of a job", stall_limit: "stalls of a job",
  backoff: "time between two attempts", retention: "how long finished jobs are kept",
  ttl_ms: "ms that a job may wait for a worker", dead_letter: "queue that dying jobs move to",
  dead_letter_after: "failures before that", lease_ms: "ms of a lease",
  leases_survive: "leases outlive the stream", registered: "known to the APIs that ask for registration",
  fan_out: "queues that new jobs go to", pause_reason: "why it is paused", paused_by: "who has paused it",
  paused_until: "when the pause ends",
};
const GROUPS = 50;
/** The server counts no further. */
const MOST_BEHIND = 1000;
const TABS = ["Jobs", "Rates", "Workers", "Config", "Schema", "Groups", "Enqueue"];

/** @param {Element} main @param {URLSearchParams} values @param {(place: string) => void} go */
export function queue(main, values, go) {
  const name = values.get("name") ?? "";
  const tab = values.get("tab") ?? "Jobs";
  const head = el("div");
  const body = el("section", { "aria-labelledby": "tab-title" });
  main.append(el("h1", {}, "Queue ", el("span", { class: "name" }, name)), head,
    el("nav", { "aria-label": "Parts of the queue", class: "tabs" }, el("ul", {}, TABS.map((each) => el("li", {},
      el("a", { href: `#/queue${query({ name, tab: each })}`, "aria-current": each === tab && "page" }, each))))),
    el("h2", { id: "tab-title" }, tab), body);
  const panel = tab === "Jobs"
    ? jobsPanel(body, { queue: name }, () => go(`queue${query({ name, tab, at: Date.now() })}`)) : null;
  const history = tab === "Rates" ? new History(name) : null;
  if (history) body.append(history.place);
  if (tab === "Enqueue") body.append(enqueueForm(name));
  if (tab === "Groups") groupsPanel(body, name);
  if (tab === "Schema") schemaPanel(body, name);
  let pausedShown = /** @type {boolean | null} */ (null);
  const buttons = el("div");
  return { view: { topic: "queue", queue: name }, draw: (/** @type {any} */ doc, /** @type {number} */ at) => {
    panel?.check();
    history?.learn();
    const row = doc.queue;
    const paused = doc.settings.paused === true;
    if (!head.contains(buttons)) head.append(el("div"), buttons);
    show(/** @type {Element} */ (head.firstElementChild), facts([
      ["waiting", number(row.counts?.ready)], ["oldest", row.since ? span(at - row.since) : "–"],
      ["running", number(row.counts?.in_flight)], ["dead", row.counts?.dead ? link(`jobs${query({ f: `status:dead queue:${/\s/.test(name) ? `"${name}"` : name}` })}`,
        number(row.counts.dead)) : "0"],
      ["out/s", rate(row.delivered)], ["done/s", rate(row.done)], ["failed/s", rate(row.failed)],
      ["workers", number(doc.workers.length)], ["state", paused ? el("span", {}, badge("paused"), " ", told((row.pause ?? "").replace(/^paused ?/, ""))) : "delivered"]]));
    if (pausedShown !== paused) {
      buttons.replaceChildren();
      buttons.append(pauseButton(name, paused) ?? "");
      pausedShown = paused;
    }
    if (tab === "Workers") show(body, workerTable(doc.workers));
    if (tab === "Config") {
      show(body, table(`Settings of ${name}`, ["setting", "value", "meaning"],
        Object.entries(SETTINGS).map(([key, text]) => ({ key, cells: [key, el("span", { "data-setting": key },
          key === "paused_until" ? time(doc.settings[key]) : setting(doc.settings[key])), text] }))),
      el("p", {}, "A dash leaves a setting to the server. Settings work at once, without a restart."));
      if (!main.querySelector("[data-edit]")) {
        const edit = actionButton("manage", "Change settings…", () => editSettings(name, doc.settings));
        if (edit) {
          edit.setAttribute("data-edit", "");
          main.append(edit);
        }
      }
    }
  } };
}

/** @param {any} value */
const setting = (value) => (value === undefined || value === null ? "–"
  : typeof value === "object" ? JSON.stringify(value) : String(value));

/** Ask for JSON, and then whether to go on with it.
 * @param {string} title @param {string} hint @param {any} value @param {(sent: any) => any} request
 * @param {() => void} [after] */
function edit(title, hint, value, request, after) {
  const box = dialog(title, el("p", {}, hint),
    el("form", { onsubmit: (/** @type {any} */ event) => {
      event.preventDefault();
      const text = event.target.json.value;
      try {
        const sent = JSON.parse(text);
        box.close();
        confirm({ title, say: text, button: "Change", ...request(sent) }, after);
      } catch (error) {
        event.target.querySelector("output").textContent = String(error);
      }
    } }, el("label", {}, "JSON ", el("textarea", { name: "json", rows: 6 }, JSON.stringify(value, null, 1))),
    el("output", {}), el("p", { class: "buttons" },
      el("button", { type: "button", onclick: () => box.close() }, "Close"), el("button", {}, "Go on…"))));
}

/** As the command reads it: JSON, or a text that is none. @param {unknown} value */
function written(value) {
  if (typeof value !== "string") return JSON.stringify(value);
  try {
    JSON.parse(value);
  } catch {
    return value;
  }
  return JSON.stringify(value);
}

/** @param {string} name @param {any} settings */
const editSettings = (name, settings) => edit(`Change settings of ${name}`,
  "A JSON object: null leaves a setting open.", settings, (body) => ({ method: "PATCH", body,
    zq: `zq settings ${quoted(name)}${Object.entries(body).map(([key, value]) => ` ${quoted(`${key}=${written(value)}`)}`).join("")}`,
    path: `queues/${encodeURIComponent(name)}/settings`, done: () => "The settings are changed." }));

/** @param {Element} body @param {string} name */
const schemaPanel = (body, name) => once(body, async () => {
  const path = `queues/${encodeURIComponent(name)}/schema`;
  const again = () => schemaPanel(body, name);
  let found = null;
  try {
    found = await get(path);
  } catch (error) {
    if (!(error instanceof Refusal) || error.status !== 404) throw error;
  }
  const change = () => edit(`Schema of ${name}`, "A schema of Avro. New jobs have to match it.",
    found?.schema ?? { type: "record", name: "Payload", fields: [] }, (schema) => ({ method: "PUT", path,
      zq: `printf '%s' ${quoted(JSON.stringify(schema))} | zq schema ${quoted(name)} --set -`, body: { schema }, done: () => "New jobs have to match this schema." }), again);
  const drop = () => confirm({ title: `Remove the schema of ${name}`, say: "New jobs are no longer checked.",
    button: "Remove", zq: `zq schema ${quoted(name)} --remove`, method: "DELETE", path, done: () => "The schema is removed." }, again);
  return [found
    ? el("div", {}, facts([["version", number(found.version)], ["since", time(found.updated_at)]]),
      el("pre", { tabindex: "0" }, JSON.stringify(found.schema, null, 2)))
    : el("p", {}, "New jobs are not checked: the queue has no schema."),
  el("p", { class: "buttons" }, actionButton("manage", "Change schema…", change), " ",
    found && actionButton("manage", "Remove schema…", drop))];
});

/** @param {string} name */
function enqueueForm(name) {
  const said = el("output", { role: "status" });
  const button = actionButton("enqueue", "Enqueue", () => undefined);
  if (!button) return el("p", {}, "Your key may not enqueue jobs.");
  button.setAttribute("type", "submit");
  return el("form", { onsubmit: async (/** @type {any} */ event) => {
    event.preventDefault();
    const form = event.target;
    const text = `{"queue":${JSON.stringify(name)},"type":${JSON.stringify(form.type.value)},"payload":${form.payload.value}}`;
    try {
      JSON.parse(text);
      const reply = await ask("api/jobs", { method: "POST", body: text,
        headers: { "Content-Type": "application/json" } });
      const job = await reply.json();
      said.replaceChildren("Stored as ", link(`job?id=${encodeURIComponent(job.id)}`, job.id));
      form.payload.value = "";
    } catch (error) {
      said.textContent = error instanceof Error ? error.message : String(error);
    }
  } }, el("label", {}, "Type ", el("input", { name: "type", required: true })),
  el("label", {}, "Payload (JSON) ", el("textarea", { name: "payload", rows: 6, required: true })),
  el("p", { class: "buttons" }, button), said);
}

/** @param {Element} body @param {string} name */
function groupsPanel(body, name) {
  const list = el("div");
  const jobs = el("div");
  const showJobs = (/** @type {string} */ group) => {
    jobs.replaceChildren();
    jobsPanel(jobs, { queue: name, group }, () => undefined);
  };
  const load = (/** @type {string} */ after) => once(list, async () => {
    const groups = (await get(`queues/${encodeURIComponent(name)}/groups${query({ after, limit: GROUPS })}`)).groups;
    return [table("Groups with unfinished jobs, by name",
      ["group", "job that has to end first", "type", "status", "failures", "since", "behind it", "jobs"],
      groups.map((/** @type {any} */ each) => groupRow(each, showJobs)), "No group has unfinished jobs."),
    el("p", { class: "buttons" },
      after && el("button", { type: "button", onclick: () => load("") }, "First groups"), " ",
      groups.length === GROUPS && el("button", { type: "button", onclick: () => load(groups.at(-1).group) }, "Next groups"))];
  });
  body.append(el("p", {}, "Jobs of one group run one after another."), list, el("form", { class: "line",
    onsubmit: (/** @type {any} */ event) => {
      event.preventDefault();
      showJobs(event.target.group.value);
    } }, el("label", {}, "Group ", el("input", { name: "group", required: true })), el("button", {}, "Show its jobs")),
  jobs);
  load("");
}

/** @param {any} each @param {(group: string) => void} showJobs */
const groupRow = ({ group, open, behind }, showJobs) => ({ key: group, cells: [el("span", { class: "name" }, group),
  jobLink(open.id), open.type, badge(open.status), number(open.attempts), time(open.dequeued_at ?? open.ready_at),
  behind < MOST_BEHIND ? number(behind) : `${number(behind)} or more`,
  el("button", { type: "button", onclick: () => showJobs(group) }, "Show its jobs")] });
