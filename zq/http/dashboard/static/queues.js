// Overview and Queues.

import { History, Sparklines } from "./chart.js";
import { badge, el, link, number, queueLink, rate, show, span, table } from "./dom.js";
import { query } from "./net.js";

const SEVERITY = ["", "note", "warning", "alarm"];
const SIGNS = ["", "·", "!", "!!"];
const HEADS = ["queue", "waiting", "oldest", "running", "dead", "out/s", "done/s", "failed/s", "workers", "state"];

/** @param {string} name @param {any} row @param {number} now @param {Sparklines} [lines] */
function queueRow(name, row, now, lines) {
  const counts = row.counts ?? {};
  const orphan = counts.ready && !row.workers && !row.delivered && !row.paused;
  return { key: name, cells: [
    queueLink(name), number(counts.ready), row.since ? span(now - row.since) : "–",
    number(counts.in_flight), number(counts.dead), rate(row.delivered), rate(row.completed),
    rate(row.failed), number(row.workers),
    row.paused ? badge("paused", row.pause) : orphan ? badge("dead", "no worker") : badge("completed", "ok"),
    ...lines ? [lines.of(name)] : [],
  ] };
}

/** @param {any} doc @param {number} now @param {string} caption @param {Sparklines} [lines] */
const queueTable = (doc, now, caption, lines) => table(caption, lines ? [...HEADS, "last hour"] : HEADS,
  (doc.order ?? []).filter((/** @type {string} */ name) => doc.queues[name])
    .map((/** @type {string} */ name) => queueRow(name, doc.queues[name], now, lines)),
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
  const history = new History();
  const body = el("div");
  const worst = el("div");
  const running = el("div");
  main.append(el("h1", {}, "Overview"), body, running, history.place, worst);
  return { view: { topic: "overview" }, draw: (/** @type {any} */ doc, /** @type {number} */ at) => {
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
    show(running, doc.sweeps?.length > 0 && [el("h2", {}, "Running sweeps"), el("ul", { class: "totals" },
      doc.sweeps.map((/** @type {any} */ sweep) => el("li", { "data-key": sweep.id }, link("sweeps",
        `${sweep.id} ${sweep.verb}`), ` ${number(sweep.changed)}`, sweep.counted ? ` of ${number(sweep.counted)}` : "",
      `, ${Math.floor(sweep.progress * 100)} %`)))]);
    history.learn();
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
  const lines = new Sparklines();
  let redraw = () => {};
  const learn = async () => {
    if (!body.isConnected) removeEventListener("scroll", learn);
    else if (await lines.learn(body)) redraw();
  };
  addEventListener("scroll", learn, { passive: true });
  const page = { view: { topic: "queues", q, sort, from, limit: 50 },
    draw: (/** @type {any} */ doc, /** @type {number} */ at) => {
      show(body, el("p", {}, `${number(doc.matching)} queues`),
        queueTable(doc, at, "Queues", lines), el("p", { class: "buttons" },
          from > 0 && link(`queues${query({ q, sort, from: Math.max(from - 50, 0) })}`, "Previous"), " ",
          from + 50 < doc.matching && link(`queues${query({ q, sort, from: from + 50 })}`, "Next")));
      redraw = () => page.draw(doc, at);
      learn();
    } };
  return page;
}
