// Overview and Queues.

import { filterButton, may, pauseButton, pauseMany } from "./actions.js";
import { badge, el, link, number, queueLink, rate, show, span, table, told } from "./dom.js";
import { query } from "./net.js";

/** Charts come after the first numbers. */
const chart = () => import("./chart.js");

const SEVERITY = ["", "note", "warning", "alarm"];
const SIGNS = ["", "·", "!", "!!"];
const HEADS = ["queue", "waiting", "oldest", "running", "dead", "out/s", "done/s", "failed/s", "workers", "state"];

/** What the page of all queues adds to a row. @typedef {{lines: import("./chart.js").Sparklines | null, select: (() => void) | null,
 *   open: (prefix: string) => string}} Extras */

/** @param {string} name @param {any} row @param {number} now @param {Extras} [extras] */
function queueRow(name, row, now, extras) {
  const counts = row.counts ?? {};
  const orphan = counts.ready && !row.workers && !row.delivered && !row.paused;
  return { key: name, cells: [
    [!row.branch && extras?.select ? el("input", { type: "checkbox", value: name, "data-stay": `select ${name} ${row.paused ?? ""}`,
      "data-paused": row.paused, "aria-label": `Select ${name}`, onchange: extras.select }) : null,
    row.branch ? link(/** @type {Extras} */ (extras).open(name), `${name}*`) : queueLink(name)], number(counts.ready), row.since ? span(now - row.since) : "–",
    number(counts.in_flight), number(counts.dead), rate(row.delivered), rate(row.done),
    rate(row.failed), number(row.workers),
    row.branch ? branchState(row) : row.paused ? el("span", { class: "says" }, badge("paused"), " ", told(row.pause.replace(/^paused ?/, ""))) : orphan ? badge("dead", "no worker") : badge("completed", "ok"),
    ...extras ? [row.branch ? "" : extras.lines?.of(name) ?? "–"] : [],
  ] };
}

/** @param {any} row */
const branchState = (row) => el("span", { class: "says" }, row.orphans ? [badge("dead", `no worker for ${number(row.orphans)}`), " "] : null,
  row.paused_queues ? [badge("paused", `${number(row.paused_queues)} paused`), " "] : null, `${number(row.branch)} queues`);

/** @param {any} doc @param {number} now @param {string} caption @param {Extras} [extras] */
const queueTable = (doc, now, caption, extras) => table(caption, extras ? [...HEADS, "last hour"] : HEADS,
  (doc.order ?? []).filter((/** @type {string} */ name) => doc.queues[name])
    .map((/** @type {string} */ name) => queueRow(name, doc.queues[name], now, extras)),
  "No queue has jobs.");

/** @param {any} finding @param {number} now */
function findingLine(finding, now) {
  const { severity, code, text, queue, since } = finding;
  return el("li", { "data-key": `${code} ${queue ?? ""}`, class: SEVERITY[severity], "data-code": code },
    el("span", { class: "sign" }, el("span", { "aria-hidden": "true" }, `${SIGNS[severity]} `), SEVERITY[severity]),
    " ", queue ? [queueLink(queue), ": "] : null, told(text), since ? `, oldest ${span(now - since)}` : "",
    queue ? el("span", { class: "does" }, doesOf(code, queue)) : link("health", " Health"));
}

/** What to do about a finding: places to look at, and buttons that ask first. @param {string} code @param {string} queue */
function doesOf(code, queue) {
  if (code === "dead" || code === "failing") {
    return [link(`jobs${query({ f: `status:dead queue:${quotedWord(queue)}` })}`, "Dead jobs"), " ", link("failures", "Causes"),
      kept(`requeue ${queue}`, code === "dead" ? filterButton("requeue", "Requeue…", { status: "dead", queue }, () => {}) : null)];
  }
  if (code === "stuck") return link("workers", "Stuck work");
  return [link(`job${query({ next: queue })}`, "Why"), " ", link(`queue${query({ name: queue, tab: "Workers" })}`, "Workers"),
    kept(`${code} ${queue}`, pauseButton(queue, code === "paused"))];
}

/** A word of the filter line. @param {string} text */
const quotedWord = (text) => (/\s/.test(text) ? `"${text}"` : text);

/** A button that keeps its focus while numbers change around it. @param {string} name @param {Element | null} button */
function kept(name, button) {
  button?.setAttribute("data-stay", name);
  return button;
}

const FIRST_FINDINGS = 7;

/** The worst findings, and the others on request. @param {any} doc @param {number} at */
function findingList(doc, at) {
  const lines = doc.findings.map((/** @type {any} */ f) => findingLine(f, at));
  const rest = doc.pulse.findings - FIRST_FINDINGS;
  return [el("ol", { class: "findings" }, lines.slice(0, FIRST_FINDINGS)), rest > 0 && el("details", {},
    el("summary", {}, `and ${number(rest)} more`), el("ol", { class: "findings" }, lines.slice(FIRST_FINDINGS)),
    doc.pulse.findings > doc.findings.length && el("p", {}, `The first ${doc.findings.length} are shown. `,
      link("queues", "All queues, the worst first")))];
}

/** @param {Element} main */
export function overview(main) {
  const history = el("div");
  /** @type {import("./chart.js").History | null} */
  let course = null;
  let asked = false;
  const learn = async () => {
    if (!course) {
      course = new (await chart()).History();
      history.append(course.place);
    }
    course.learn();
  };
  const body = el("div");
  const worst = el("div");
  const running = el("div");
  main.append(el("h1", {}, "Overview"), body, running, history, worst);
  return { view: { topic: "overview" }, draw: (/** @type {any} */ doc, /** @type {number} */ at) => {
    const totals = doc.pulse.totals;
    show(body, el("h2", {}, "What is wrong"),
      doc.findings.length
        ? findingList(doc, at) : el("p", { class: "fine" }, "Nothing is wrong."),
      el("h2", {}, "Jobs"),
      el("ul", { class: "totals" }, Object.entries(totals).map(([status, n]) => el("li", { "data-key": status },
        badge(status), " ", link(`jobs${query({ f: `status:${status}` })}`, number(Number(n)))))));
    show(running, doc.sweeps?.length > 0 && [el("h2", {}, "Running sweeps"), el("ul", { class: "totals" },
      doc.sweeps.map((/** @type {any} */ sweep) => el("li", { "data-key": sweep.id }, link("sweeps",
        `${sweep.id} ${sweep.verb}`), ` ${number(sweep.changed)}`, sweep.counted ? ` of ${number(sweep.counted)}` : "",
      `, ${Math.floor(sweep.progress * 100)} %`)))]);
    if (course || !asked) setTimeout(learn);
    asked = true;
    show(worst, el("h2", {}, `Queues, the worst ${Math.min(20, doc.known_queues)} of ${number(doc.known_queues)}`),
      queueTable(doc, at, "The worst queues"));
  } };
}

/** @param {Element} main @param {URLSearchParams} values @param {(place: string) => void} go */
export function queues(main, values, go) {
  const q = values.get("q") ?? "";
  const sort = values.get("sort") ?? "worst";
  const from = Number(values.get("from") ?? 0);
  const tree = values.get("tree") ?? "";
  const under = tree && (values.get("under") ?? "");
  const body = el("div");
  const picked = el("div");
  const place = (/** @type {Record<string, any>} */ change) => `queues${query({ q, sort, tree, under, ...change })}`;
  const turn = (/** @type {Record<string, any>} */ change) => go(place(change));
  const select = () => {
    const boxes = [...body.querySelectorAll("input:checked")];
    const names = (/** @type {boolean} */ paused) => boxes.filter((box) => box.hasAttribute("data-paused") === paused)
      .map((box) => /** @type {any} */ (box).value);
    picked.replaceChildren(...boxes.length ? [el("p", { class: "buttons" }, `${number(boxes.length)} selected`,
      [false, true].map((paused) => names(paused).length > 0 && pauseMany(names(paused), paused, () => {
        for (const box of boxes) /** @type {any} */ (box).checked = false;
        select();
      })))] : []);
  };
  main.append(el("h1", {}, "Queues"), el("form", { class: "line", role: "search",
    onsubmit: (/** @type {any} */ event) => {
      event.preventDefault();
      turn({ q: event.target.q.value, sort: event.target.sort.value, tree: event.target.tree.checked ? 1 : "" });
    } },
  el("label", {}, "Name contains ", el("input", { name: "q", value: q })),
  el("label", {}, "Order ", el("select", { name: "sort" }, ["worst", "waiting", "failing", "name"].map(
    (each) => el("option", { selected: each === sort }, each)))),
  el("label", {}, el("input", { type: "checkbox", name: "tree", checked: Boolean(tree) }), "As a tree"),
  el("button", {}, "Show")), tree ? steps(under, (prefix) => place({ under: prefix })) : "", picked, body);
  chart().then(({ Sparklines }) => {
    extras.lines = new Sparklines();
    learn();
  });
  let redraw = () => {};
  const learn = async () => {
    if (!body.isConnected) removeEventListener("scroll", learn);
    else if (await extras.lines?.learn(body)) redraw();
  };
  addEventListener("scroll", learn, { passive: true });
  /** @type {Extras} */
  const extras = { lines: null, select: may("manage") ? select : null, open: (/** @type {string} */ prefix) => place({ under: prefix }) };
  const page = { view: { topic: "queues", q, sort, from, limit: 50, ...tree && { tree, under } },
    draw: (/** @type {any} */ doc, /** @type {number} */ at) => {
      show(body, el("p", {}, `${number(doc.matching)} ${tree ? "rows" : "queues"}`),
        queueTable(doc, at, "Queues", extras), el("p", { class: "buttons" },
          from > 0 && link(place({ from: Math.max(from - 50, 0) }), "Previous"), " ",
          from + 50 < doc.matching && link(place({ from: from + 50 }), "Next")));
      redraw = () => page.draw(doc, at);
      learn();
    } };
  return page;
}

/** The way down to a branch of the tree. @param {string} under @param {(prefix: string) => string} to */
function steps(under, to) {
  const parts = under.match(/[^.:/]*[.:/]/g) ?? [];
  return el("nav", { "aria-label": "Branch" }, el("ul", {}, el("li", {}, link(to(""), "All")),
    parts.map((part, at) => el("li", {}, link(to(parts.slice(0, at + 1).join("")), part)))));
}
