// What happened over minutes, hours and days: lines in SVG with a table of the same numbers.

import { actionButton, confirm, quoted } from "./actions.js";
import { clock, day, el, facts, number, rate, show, span, table, time } from "./dom.js";
import { get, query } from "./net.js";

const SPANS = ["5m", "1h", "24h", "7d"];
const SERIES = [["enqueued", "in", "stored"], ["completed", "done", "completed"], ["failed", "failed", "failed"]];
const WIDTH = 640;
const HEIGHT = 120;
const BELOW = 18;
const EVERY_MS = 10_000;

/** @param {string} tag @param {Record<string, any>} attributes @param {string} [text] */
function shape(tag, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  if (text) made.textContent = text;
  return made;
}

/** @param {number} ms */
const short = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : span(ms));

/** @param {any} times */
const shares = (times) => (times.count
  ? `p50 ${short(times.p50_ms)}, p95 ${short(times.p95_ms)}, p99 ${short(times.p99_ms)}` : "–");

/** A chart of one queue, or of all together. */
export class History {
  /** @param {string} [queue] */
  constructor(queue) {
    this.queue = queue;
    this.chosen = "1h";
    this.asked = 0;
    this.keys = el("figcaption");
    this.picture = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT + BELOW}`, role: "img", class: "chart",
      "aria-label": "Jobs a second: not known yet" });
    this.rows = el("div");
    this.named = el("div");
    this.numbers = el("div");
    this.buttons = SPANS.map((each) => el("button", { type: "button", "aria-pressed": String(each === this.chosen),
      onclick: () => this.choose(each) }, each));
    this.place = el("section", { "aria-label": "History", class: "history" },
      el("p", { class: "buttons", role: "group", "aria-label": "Span" }, this.buttons, queue ? null : markButton(() => this.refresh())),
      el("figure", {}, this.keys, this.picture, el("details", {}, el("summary", {}, "Table"), this.named, this.rows)),
      this.numbers);
  }

  /** @param {string} chosen */
  choose(chosen) {
    this.chosen = chosen;
    SPANS.forEach((each, i) => this.buttons[i].setAttribute("aria-pressed", String(each === chosen)));
    this.refresh();
  }

  refresh() {
    this.asked = 0;
    this.learn();
  }

  /** Ask again, if it is time for that. */
  async learn() {
    if (Date.now() - this.asked < EVERY_MS) return;
    this.asked = Date.now();
    const chosen = this.chosen;
    try {
      const found = await get(`stats/history${query({ queue: this.queue, range: chosen })}`);
      if (chosen === this.chosen) this.draw(found);
    } catch (error) {
      show(this.numbers, el("p", {}, error instanceof Error ? error.message : String(error)));
    }
  }

  /** When it begins, its middle, and its end. @param {any[]} points */
  hours(points) {
    const many = points.length - 1;
    if (many < 1) return [];
    const days = points[many].at - points[0].at > 86_400_000;
    return [[0, "start"], [many >> 1, "middle"], [many, "end"]].map(([at, anchor]) => shape("text", {
      x: (Number(at) * WIDTH) / many, y: HEIGHT + BELOW - 5, class: "axis", "text-anchor": anchor },
    `${days ? day(points[Number(at)].at) : clock(points[Number(at)].at).slice(0, 5)}`));
  }

  /** Moments with a name, such as a deployment. @param {any} doc @param {any[]} points */
  marks(doc, points) {
    const [first, last] = [points[0].at, points[points.length - 1].at];
    return doc.marks.filter((/** @type {any} */ mark) => mark.at >= first).flatMap((/** @type {any} */ mark) => {
      const x = ((Math.min(mark.at, last) - first) / Math.max(last - first, 1)) * WIDTH;
      return [shape("line", { x1: x, x2: x, y1: 0, y2: HEIGHT, class: "axis mark" }),
        shape("text", { x: x > WIDTH / 2 ? x - 3 : x + 3, y: 24, class: "axis", "text-anchor": x > WIDTH / 2 ? "end" : "start" },
          `▾ ${mark.text.slice(0, 24)}`)];
    });
  }

  /** @param {any} doc */
  draw(doc) {
    const seconds = doc.step_ms / 1000;
    const points = doc.points.map((/** @type {any} */ point) => ({ at: point.at,
      values: SERIES.map(([field]) => point[field] / seconds) }));
    const top = Math.max(...points.flatMap((/** @type {any} */ point) => point.values), 1 / seconds);
    const title = `Jobs a second, ${doc.range}`;
    const sums = SERIES.map(([field]) => doc.points.reduce((/** @type {number} */ sum, /** @type {any} */ point) =>
      sum + point[field], 0));
    const summary = SERIES.map(([, word], i) => `${word} ${number(sums[i])}`).join(", ");
    this.picture.replaceChildren(shape("title", {}, title),
      shape("text", { x: 2, y: 12, class: "axis" }, `${rate(top)}/s`),
      shape("line", { x1: 0, x2: WIDTH, y1: HEIGHT - 1, y2: HEIGHT - 1, class: "axis" }),
      ...this.hours(points), ...this.marks(doc, points));
    this.picture.setAttribute("aria-label", `${title}: ${summary}`);
    const step = WIDTH / Math.max(points.length - 1, 1);
    SERIES.forEach(([, , look], i) => this.picture.append(shape("polyline", { class: `line ${look}`,
      points: points.map((/** @type {any} */ point, /** @type {number} */ at) => `${(at * step).toFixed(1)},${
        (HEIGHT - 2 - (point.values[i] / top) * (HEIGHT - 20)).toFixed(1)}`).join(" ") })));
    show(this.keys, `${title}: `, SERIES.map(([, word, look], i) =>
      el("span", { class: `key ${look}` }, `${word} ${number(sums[i])} `)));
    show(this.named, doc.marks.length > 0 && el("ul", {}, doc.marks.map((/** @type {any} */ mark) =>
      el("li", {}, time(mark.at), ` ${mark.text}`))));
    show(this.rows, table(title, ["from", ...SERIES.map(([, word]) => `${word}/s`)],
      points.slice(-60).reverse().map((/** @type {any} */ point) => ({ key: String(point.at),
        cells: [time(point.at), ...point.values.map(rate)] }))));
    show(this.numbers, facts([["wait", shares(doc.wait)], ["run", shares(doc.run)],
      ["in/s, 5 min", rate(doc.arrivals_per_second)], ["done/s, 5 min", rate(doc.ends_per_second)],
      ["drained", doc.waiting === 0 ? "nothing waits" : doc.drained_ms === undefined
        ? "never at this rate" : `in ${span(doc.drained_ms)}`]]));
  }
}

/** @param {() => void} after */
const markButton = (after) => actionButton("manage", "Mark this moment…", () => confirm({
  title: "Mark this moment", say: "Charts show the name, such as that of a release that was deployed.", button: "Mark it",
  asks: [["text", "Name"]], filled: ({ text }) => ({ zq: `zq mark ${quoted(text)}`, body: { text } }),
  method: "POST", path: "marks", body: { text: "" },
  done: (mark) => `${mark.text} is marked.`,
}, after));

const SPARK_WIDTH = 120;
const SPARK_HEIGHT = 20;
const SPARK_EVERY_MS = 60_000;

/** The last hour of each queue that is in sight, as a small line. One request at a time asks for them. */
export class Sparklines {
  constructor() {
    /** @type {Map<string, {at: number, points: any[]}>} */
    this.found = new Map();
    this.busy = false;
  }

  /** The line of a queue, or a dash while it is not known. @param {string} queue */
  of(queue) {
    const points = this.found.get(queue)?.points;
    if (!points?.length) return "–";
    const counts = points.map((each) => each.completed);
    const top = Math.max(...counts, 1);
    const step = SPARK_WIDTH / Math.max(counts.length - 1, 1);
    const sum = counts.reduce((one, other) => one + other, 0);
    const text = `done in the last hour: ${number(sum)}, at most ${number(Math.max(...counts))} a minute`;
    const picture = shape("svg", { viewBox: `0 0 ${SPARK_WIDTH} ${SPARK_HEIGHT}`, role: "img", class: "chart spark",
      "aria-label": text });
    picture.append(shape("title", {}, text), shape("polyline", { class: "line completed",
      points: counts.map((n, at) => `${(at * step).toFixed(1)},${
        (SPARK_HEIGHT - 2 - (n / top) * (SPARK_HEIGHT - 4)).toFixed(1)}`).join(" ") }));
    return picture;
  }

  /** Ask for the rows in sight that are unknown, or known for a minute. Say whether any was.
   * @param {Element} place */
  async learn(place) {
    if (this.busy) return false;
    this.busy = true;
    let learnt = false;
    for (const row of place.querySelectorAll("tbody tr[data-key]")) {
      const queue = row.getAttribute("data-key") ?? "";
      if (Date.now() - (this.found.get(queue)?.at ?? 0) < SPARK_EVERY_MS) continue;
      const { top, bottom } = row.getBoundingClientRect();
      if (!row.isConnected || bottom < 0 || top > innerHeight) continue;
      let points = [];
      try {
        points = (await get(`stats/history${query({ queue, range: "1h" })}`)).points;
      } catch {
        // The head says that the server is silent, and the dash stays.
      }
      this.found.set(queue, { at: Date.now(), points });
      learnt = true;
    }
    this.busy = false;
    return learnt;
  }
}
