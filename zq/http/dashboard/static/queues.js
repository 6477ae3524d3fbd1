// Overview, Queues and Queue.

import { actionButton, confirm, dialog, pauseButton } from "./actions.js";
import { Rates } from "./chart.js";
import { badge, el, facts, link, number, queueLink, rate, show, span, table, time } from "./dom.js";
import { jobsPanel } from "./jobs.js";
import { ask, query } from "./net.js";

const SEVERITY = ["", "note", "warning", "alarm"];
const SIGNS = ["", "·", "!", "!!"];
const HEADS = ["queue", "waiting", "oldest", "running", "dead", "out/s", "done/s", "failed/s", "workers", "state"];

/** @param {string} name @param {any} row @param {number} now */
function queueRow(name, row, now) {
  const counts = row.counts ?? {};
  const orphan = counts.ready && !row.workers && !row.delivered && !row.paused;
  return { key: name, cells: [
    queueLink(name), number(counts.ready), row.since ? span(now - row.since) : "–",
    number(counts.in_flight), number(counts.dead), rate(row.delivered), rate(row.completed),
    rate(row.failed), number(row.workers),
    row.paused ? badge("paused") : orphan ? badge("dead", "no worker") : badge("completed", "ok"),
  ] };
}

/** @param {any} doc @param {number} now @param {string} caption */
const queueTable = (doc, now, caption) => table(caption, HEADS,
  (doc.order ?? []).filter((/** @type {string} */ name) => doc.queues[name])
    .map((/** @type {string} */ name) => queueRow(name, doc.queues[name], now)),
  "No queue has jobs.");

/** @param {any} finding @param {number} now */
function findingLine(finding, now) {
  const { severity, code, text, queue, since } = finding;
  const more = code === "dead" || code === "failing"
    ? link(`jobs${query({ f: `status:dead queue:${queue}` })}`, "Dead jobs") : null;
  return el("li", { "data-key": `${code} ${queue ?? ""}`, class: SEVERITY[severity], "data-code": code },
    el("span", { class: "sign" }, el("span", { "aria-hidden": "true" }, `${SIGNS[severity]} `), SEVERITY[severity]),
    " ", queue ? [queueLink(queue), ": "] : null, text, since ? `, oldest ${span(now - since)}` : "", " ", more);
}

/** @param {Element} main */
export function overview(main) {
  const rates = new Rates([["stored", "in"], ["completed", "done"], ["failed", "failed"]]);
  const body = el("div");
  const worst = el("div");
  main.append(el("h1", {}, "Overview"), body, rates.figure, worst);
  return { view: { topic: "overview" }, draw: (/** @type {any} */ doc, /** @type {number} */ at) => {
    rates.learn(doc, at);
    const totals = doc.pulse.totals;
    show(body, el("h2", {}, "What is wrong"),
      doc.findings.length
        ? el("ol", { class: "findings" }, doc.findings.map((/** @type {any} */ f) => findingLine(f, at)))
        : el("p", { class: "fine" }, "Nothing is wrong."),
      doc.pulse.findings > doc.findings.length
        ? el("p", {}, `and ${number(doc.pulse.findings - doc.findings.length)} more`) : null,
      el("h2", {}, "Jobs"),
      el("ul", { class: "totals" }, Object.entries(totals).map(([status, n]) => el("li", { "data-key": status },
        badge(status), " ", link(`jobs${query({ f: `status:${status}` })}`, number(Number(n)))))));
    rates.draw();
    show(worst, el("h2", {}, `Queues, the worst ${Math.min(20, doc.known_queues)} of ${number(doc.known_queues)}`),
      queueTable(doc, at, "The worst queues"));
  } };
}

/** @param {Element} main @param {URLSearchParams} values @param {(place: string) => void} go */
export function queues(main, values, go) {
  const q = values.get("q") ?? "";
  const sort = values.get("sort") ?? "worst";
  const from = Number(values.get("from") ?? 0);
  const body = el("div");
  const turn = (/** @type {Record<string, any>} */ change) =>
    go(`queues${query({ q, sort, from: "", ...change })}`);
  main.append(el("h1", {}, "Queues"), el("form", { class: "line", role: "search",
    onsubmit: (/** @type {any} */ event) => {
      event.preventDefault();
      turn({ q: event.target.q.value, sort: event.target.sort.value });
    } },
  el("label", {}, "Name contains ", el("input", { name: "q", value: q })),
  el("label", {}, "Order ", el("select", { name: "sort" }, ["worst", "waiting", "failing", "name"].map(
    (each) => el("option", { selected: each === sort }, each)))),
  el("button", {}, "Show")), body);
  return { view: { topic: "queues", q, sort, from, limit: 50 },
    draw: (/** @type {any} */ doc, /** @type {number} */ at) => show(body,
      el("p", {}, `${number(doc.matching)} queues`),
      queueTable(doc, at, "Queues"), el("p", { class: "buttons" },
        from > 0 && link(`queues${query({ q, sort, from: Math.max(from - 50, 0) })}`, "Previous"), " ",
        from + 50 < doc.matching && link(`queues${query({ q, sort, from: from + 50 })}`, "Next"))) };
}

/** Every setting of a queue: its unit and its meaning. */
const SETTINGS = {
  paused: "jobs are not delivered", max_depth: "most unfinished jobs", rate: "deliveries a second",
  concurrency: "jobs in flight at once", retry_limit: "retries of a job", stall_limit: "stalls of a job",
  backoff: "time between two attempts", retention: "how long finished jobs are kept",
  ttl_ms: "ms that a job may wait for a worker", dead_letter: "queue that dying jobs move to",
  dead_letter_after: "failures before that", lease_ms: "ms of a lease",
  leases_survive: "leases outlive the stream", registered: "known to the doors that ask for registration",
  fan_out: "queues that new jobs go to",
};
const TABS = ["Jobs", "Workers", "Config", "Groups", "Enqueue"];

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
  if (tab === "Jobs") jobsPanel(body, { queue: name }, () => go(`queue${query({ name, tab })}`));
  if (tab === "Enqueue") body.append(enqueueForm(name));
  if (tab === "Groups") groupsForm(body, name);
  let pausedShown = /** @type {boolean | null} */ (null);
  const buttons = el("div");
  return { view: { topic: "queue", queue: name }, draw: (/** @type {any} */ doc, /** @type {number} */ at) => {
    const row = doc.queue;
    const paused = doc.settings.paused === true;
    if (!head.contains(buttons)) head.append(el("div"), buttons);
    show(/** @type {Element} */ (head.firstElementChild), facts([
      ["waiting", number(row.counts?.ready)], ["oldest", row.since ? span(at - row.since) : "–"],
      ["running", number(row.counts?.in_flight)], ["dead", number(row.counts?.dead)],
      ["out/s", rate(row.delivered)], ["done/s", rate(row.completed)], ["failed/s", rate(row.failed)],
      ["workers", number(doc.workers.length)], ["state", paused ? badge("paused") : "delivered"]]));
    if (pausedShown !== paused) {
      buttons.replaceChildren();
      buttons.append(pauseButton(name, paused) ?? "");
      pausedShown = paused;
    }
    if (tab === "Workers") show(body, workerTable(doc.workers));
    if (tab === "Config") {
      show(body, table(`Settings of ${name}`, ["setting", "value", "meaning"],
        Object.entries(SETTINGS).map(([key, text]) => ({ key, cells: [key, el("span", { "data-setting": key },
          setting(doc.settings[key])), text] }))),
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

/** @param {any[]} workers */
export const workerTable = (workers) => table("Open streams", ["worker", "queues", "holds", "window",
  "address", "client", "since", "unsent", "state"], workers.map((worker, at) => ({
  key: `${worker.id} ${at}`, cells: [worker.id, worker.queues.join(", ") || "all",
    number(Array.isArray(worker.held) ? worker.held.length : worker.held), number(worker.prefetch),
    worker.address, worker.client, time(worker.since), number(worker.unsent_bytes),
    worker.draining ? badge("paused", "draining") : badge("running", "takes jobs")] })),
"No stream is open.");

/** @param {string} name @param {any} settings */
function editSettings(name, settings) {
  const box = dialog(`Change settings of ${name}`, el("p", {}, "A JSON object: null leaves a setting open."),
    el("form", { onsubmit: (/** @type {any} */ event) => {
      event.preventDefault();
      const text = event.target.patch.value;
      try {
        const body = JSON.parse(text);
        box.close();
        confirm({ title: `Change settings of ${name}`, say: text, button: "Change", method: "PATCH",
          path: `queues/${encodeURIComponent(name)}/settings`, body, done: () => "The settings are changed." });
      } catch (error) {
        event.target.querySelector("output").textContent = String(error);
      }
    } }, el("label", {}, "Changes ", el("textarea", { name: "patch", rows: 6 }, JSON.stringify(settings, null, 1))),
    el("output", {}), el("p", { class: "buttons" },
      el("button", { type: "button", onclick: () => box.close() }, "Close"), el("button", {}, "Go on…"))));
}

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
function groupsForm(body, name) {
  const found = el("div");
  body.append(el("p", {}, "Jobs of one group run one after another."), el("form", { class: "line",
    onsubmit: (/** @type {any} */ event) => {
      event.preventDefault();
      found.replaceChildren();
      jobsPanel(found, { queue: name, group: event.target.group.value }, () => undefined);
    } }, el("label", {}, "Group ", el("input", { name: "group", required: true })), el("button", {}, "Show its jobs")),
  found);
}
