// Failures by their causes: by count, by queue or by time. Chart and card follow the row that is chosen.

import { filterButton, may, sweep } from "./actions.js";
import { Asked } from "./asked.js";
import { Chart } from "./chart.js";
import { ago, brief, clock, el, number, plain, rate, show, time } from "./dom.js";
import { lineOf } from "./filter.js";
import { get, query, serverNow } from "./net.js";
import { card, empty, menu, name, queueName, segment, spark, table } from "./parts.js";

const RANGES = ["15m", "1h", "24h", "7d"];
const WORDS = /** @type {Record<string, string>} */ ({ "15m": "15 m", "1h": "60 m", "24h": "24 h", "7d": "7 d" });
const LONG = /** @type {Record<string, string>} */ ({ "15m": "15 minutes", "1h": "60 minutes", "24h": "24 hours", "7d": "7 days" });
const ORDERS = /** @type {Record<string, string>} */ ({ count: "the most frequent first", queue: "by queue", time: "the latest first" });

/** What a cause is called: its type, or else the beginning of its message. @param {any} cause */
const called = (cause) => cause.error_type || plain(cause.message).slice(0, 40) || cause.id;

/** @param {Element} main @param {URLSearchParams} values @param {(place: string) => void} go */
export function failures(main, values, go) {
  const now = { range: values.get("range") ?? "1h", order: values.get("order") ?? "count", queue: values.get("queue") ?? "", q: values.get("q") ?? "",
    dead: values.get("dead") ?? "", fresh: values.get("fresh") ?? "", cause: values.get("cause") ?? "" };
  if (!RANGES.includes(now.range)) now.range = "1h";
  const place = (/** @type {Record<string, any>} */ change) => `failures${query({ ...now, range: now.range === "1h" ? "" : now.range, order: now.order === "count" ? "" : now.order, ...change })}`;
  const chart = new Chart({ title: "Failed attempts a minute", figure: rate, series: [{ word: "all causes", look: "in", of: (point) => point.all },
    { word: "this cause", look: "failed", of: (point) => point.cause }] });
  const chosen = new Chosen(() => asked.again());
  const [heading, list] = [el("header"), el("div")];
  let found = /** @type {any} */ (null);
  const redraw = () => {
    if (!found) return;
    const causes = matching(found.causes, now);
    const one = causes.find((/** @type {any} */ each) => each.id === now.cause) ?? causes[0];
    chosen.show(one, found.at);
    drawChart(chart, found, one);
    show(heading, headerOf(found, causes, now));
    show(list, causeTable(causes, one, found.at, now, place, go, () => asked.again()));
  };
  let asks = 0;
  const asked = new Asked(async () => {
    const mine = asks += 1;
    const answer = await get(`failures${query({ range: now.range, queue: now.queue, order: now.order })}`);
    if (mine !== asks) return list;
    found = { ...answer, marks: marksOf(answer.causes), at: serverNow() };
    redraw();
    return list;
  });
  const bar = el("div", { class: "bar" });
  const heads = () => show(bar, el("h1", { title: "A cause is a type of error and its message without numbers, ids and texts" }, "Failures"),
    segment("Range", RANGES, now.range, (range) => go(place({ range: range === "1h" ? "" : range })), WORDS), filterForm(now, (change) => go(place(change))));
  heads();
  main.append(bar, el("div", { class: "two wide-left" }, chart.place, chosen.place), el("section", { class: "card", "aria-label": "Causes" }, heading, asked.place));
  return { view: { topic: "pulse" }, draw: () => asked.draw(),
    turn: (/** @type {URLSearchParams} */ next) => {
      const before = place({ cause: "", q: "", dead: "", fresh: "" });
      for (const key of Object.keys(now)) /** @type {any} */ (now)[key] = next.get(key) ?? { range: "1h", order: "count" }[key] ?? "";
      heads();
      if (before === place({ cause: "", q: "", dead: "", fresh: "" })) redraw();
      else asked.again();
      return true;
    } };
}

/** @param {any} now @param {(change: Record<string, string>) => void} turn */
function filterForm(now, turn) {
  const box = (/** @type {string} */ key, /** @type {string} */ text) => el("label", { class: "bar" }, el("input", { type: "checkbox", class: "box", checked: Boolean(now[key]),
    "data-stay": `${key} ${now[key]}`, onchange: (/** @type {any} */ event) => turn({ [key]: event.target.checked ? "1" : "" }) }), text);
  return [el("form", { class: "filter", role: "search", "data-key": "filter", "data-stay": `filter ${now.queue} ${now.q}`, onsubmit: (/** @type {any} */ event) => {
    event.preventDefault();
    const words = event.target.q.value.trim().split(/\s+/).filter(Boolean);
    const queue = words.find((/** @type {string} */ each) => each.startsWith("queue:"))?.slice(6) ?? "";
    turn({ queue, q: words.filter((/** @type {string} */ each) => !each.startsWith("queue:")).join(" ") });
  } }, el("input", { id: "filter", name: "q", value: [now.queue && `queue:${now.queue}`, now.q].filter(Boolean).join(" "), "aria-label": "Filter causes",
    placeholder: "queue:sms or a word of the message", spellcheck: "false", autocomplete: "off" })),
  box("dead", "only with dead jobs"), box("fresh", "only new ones")];
}

/** Those whose words match, without case. @param {any[]} causes @param {any} now */
function matching(causes, now) {
  const words = now.q.toLowerCase().split(/\s+/).filter(Boolean);
  return causes.filter((each) => (!now.dead || each.dead) && (!now.fresh || each.is_new)
    && words.every((/** @type {string} */ word) => [each.error_type, each.message, ...each.queues ?? [], ...each.types ?? []].join(" ").toLowerCase()
      .includes(word.replace(/^type:/, ""))));
}

/** @param {any} found @param {any[]} causes @param {any} now */
function headerOf(found, causes, now) {
  const sum = (/** @type {any[]} */ of, /** @type {string} */ field) => of.reduce((n, each) => n + (each[field] ?? 0), 0);
  const dead = sum(causes, "dead");
  return [el("span", {}, el("b", {}, number(sum(causes, "count"))), el("span", { class: "muted" },
    ` failed attempts of ${number(causes.length)} ${causes.length === 1 ? "cause" : "causes"} in ${LONG[now.range]}, ${ORDERS[now.order] ?? ""}`)),
  el("span", { class: "push muted" }, dead ? `${number(dead)} dead jobs have these causes, ` : "", `asked at ${clock(found.at)}`)];
}

/** @param {any[]} causes @param {any} one @param {number} at @param {any} now @param {(change: any) => string} place @param {(to: string) => void} go @param {() => void} after */
const causeTable = (causes, one, at, now, place, go, after) => table({ caption: `Causes of failures in ${LONG[now.range]}`,
  columns: [{ head: "cause" }, { head: "queue", is: "w12 c3", sort: "queue" }, { head: `last ${WORDS[now.range]}`, is: "w9 c2" },
    { head: "count", is: "num w6", sort: "count" }, { head: "before", is: "num w7 c3", title: `beside the ${LONG[now.range]} before` }, { head: "first", is: "num w6 c4" },
    { head: "last", is: "num w5 c2", sort: "time" }, { head: "dead now", is: "num w6" }, { spoken: "actions", is: "do wdo2" }],
  rows: causes.map((each) => ({ key: each.id, here: each === one, cells: [
    el("a", { class: "cut plain", href: `#/${place({ cause: each.id })}`, title: plain([each.error_type, each.message].filter(Boolean).join(": ")), "aria-current": each === one ? "true" : null },
      each.error_type && el("b", {}, plain(each.error_type), " "), plain(each.message || each.id)),
    queuesOf(each), spark(each.bars ?? [], `${number(each.count)} in ${LONG[now.range]}`, { bars: true, hot: Boolean(each.is_new || each.times >= 2) }),
    el("b", {}, number(each.count)), beside(each), ago(each.since, at), ago(each.latest, at),
    each.dead ? number(each.dead) : el("span", { class: "muted" }, "0"), doOf(each, place, go, after)] })),
  sorted: now.order === "queue" ? "queue" : `-${now.order}`, sort: (by) => go(place({ order: by.replace("-", "") === "count" ? "" : by.replace("-", "") })),
  nothing: empty(`No attempt has failed in ${LONG[now.range]}`, now.q || now.queue || now.dead || now.fresh ? el("a", { href: "#/failures" }, "All causes") : "") });

/** @param {any} cause */
const queuesOf = ({ queues = [] }) => (queues.length === 1 ? queueName(queues[0]) : name(queues.join(", ")));

/** How many there were in the range before, and that it is new or comes far more often. @param {any} cause */
const beside = ({ before, is_new: isNew, times }) => [before === undefined ? "–" : number(before), isNew ? [" ", el("span", { class: "bad" }, "new")]
  : times >= 2 ? [" ", el("span", { class: "bad" }, `↑ ×${times < 10 ? Number(times.toFixed(1)) : Math.round(times)}`)] : null].flat();

/** @param {any} cause @param {(change: any) => string} place @param {(to: string) => void} go @param {() => void} after */
function doOf(cause, place, go, after) {
  const act = (/** @type {"requeue" | "cancel" | "delete"} */ verb, /** @type {string} */ status) => () => sweep(verb, { status, error: cause.id }, after);
  return [requeueButton(cause, after, "small"), " ", ...menu(`More for ${cause.id}`, [["Its jobs", `jobs${query({ f: lineOf({ error: cause.id }) })}`],
    cause.sample && ["A sample", `job${query({ id: cause.sample })}`], may("manage") && cause.dead && ["Requeue the dead ones…", act("requeue", "dead")],
    may("manage") && ["Cancel those that wait…", act("cancel", "ready,scheduled")], may("manage") && cause.dead && ["Delete the dead ones…", act("delete", "dead")]])];
}

/** @param {any} cause @param {() => void} after @param {string} look */
function requeueButton(cause, after, look) {
  const made = filterButton("requeue", cause.dead ? `Requeue ${number(cause.dead)}…` : "Requeue…", { status: "dead", error: cause.id }, after);
  if (!made) return null;
  made.className = `btn ${look}`;
  made.disabled = !cause.dead;
  made.title = cause.dead ? "" : "None of its jobs is dead";
  // A name has no number: with another name it would be another button.
  made.setAttribute("aria-label", `Requeue the dead jobs of ${look.includes("solid") ? "the cause that is open, " : ""}${cause.id}`);
  return made;
}

/** The marks before which causes did not come. @param {any[]} causes */
const marksOf = (causes) => [...new Map(causes.filter(({ mark }) => mark).map(({ mark }) => [mark.at, mark])).values()];

/** The bars of all causes, and of the one that is chosen, a minute. @param {Chart} chart @param {any} found @param {any} one */
function drawChart(chart, found, one) {
  const { step_ms: step, open_ms: open = step, since } = found;
  const many = Math.max(...found.causes.map((/** @type {any} */ each) => each.bars?.length ?? 0), 0);
  const minutes = (/** @type {number} */ at) => Math.max(at === many - 1 ? open : step, 1) / 60_000;
  const sum = (/** @type {number} */ at) => found.causes.reduce((/** @type {number} */ n, /** @type {any} */ each) => n + (each.bars?.[at] ?? 0), 0);
  chart.draw({ step_ms: step, open_ms: open, marks: found.marks, points: Array.from({ length: many }, (_, at) => ({ at: since + at * step,
    all: sum(at) / minutes(at), cause: (one?.bars?.[at] ?? 0) / minutes(at) })) });
}

/** The cause that is chosen, with the error of one of its jobs. */
class Chosen {
  /** @param {() => void} after */
  constructor(after) {
    this.after = after;
    this.place = el("section", { class: "card", "aria-label": "The cause that is chosen" });
    this.text = el("pre", { class: "code", role: "group", tabindex: "0", "aria-label": "Sample of the cause", hidden: true, "data-stay": "sample" });
    this.sample = "";
  }

  /** @param {any} cause @param {number} now */
  show(cause, now) {
    if (!cause) {
      show(this.place, empty("No cause is chosen"));
      return;
    }
    this.learn(cause.sample);
    show(this.place, el("header", {}, el("h2", { class: "cut", title: plain(called(cause)) }, plain(called(cause))), el("span", { class: "bad", hidden: !cause.is_new }, "new"),
      el("span", { class: "push acts" }, requeueButton(cause, this.after, "solid small"), el("a", { class: "btn small", href: `#/jobs${query({ f: lineOf({ error: cause.id }) })}` }, "Its jobs"),
        cause.sample && el("a", { class: "btn small", href: `#/job${query({ id: cause.sample })}` }, "A sample"))),
    el("div", { class: "body stackv" }, el("p", {}, began(cause)),
      // What is shown already stays, with its selection and where it is scrolled to.
      this.text.isConnected ? el("pre", { "data-stay": "sample" }) : this.text,
      el("dl", { class: "facts" }, [["queues", cause.queues?.length === 1 ? queueName(cause.queues[0]) : name((cause.queues ?? []).join(", ") || "–")],
        ["types", name((cause.types ?? []).join(", ") || "–")], ["dead", number(cause.dead)], ["last", cause.latest ? `${brief(now - cause.latest)} ago` : "–"]]
        .flatMap(([key, value]) => [el("dt", {}, key), el("dd", {}, value)]))));
  }

  /** The error of a job that has failed so. @param {string | undefined} id */
  async learn(id) {
    if (!id || id === this.sample) return;
    this.sample = id;
    try {
      const { errors } = await get(`jobs/${encodeURIComponent(id)}/errors${query({ order: "desc", limit: 1 })}`);
      if (id !== this.sample || !errors.length) return;
      const [{ error_type: kind, message, backtrace }] = errors;
      this.text.textContent = plain([kind, message].filter(Boolean).join(": ")).slice(0, 2000) + (backtrace ? `\n${backtrace}` : "");
      this.text.hidden = false;
    } catch {
      this.text.hidden = true;
    }
  }
}

/** When it began, and after which mark. @param {any} cause */
function began(cause) {
  if (!cause.since) return plain(cause.message);
  const mark = cause.mark;
  return mark ? ["Began ", el("b", {}, `${brief(cause.since - mark.at)} after mark ${plain(mark.text)}`), ", at ", time(cause.since), "."] : ["First seen at ", time(cause.since), "."];
}
