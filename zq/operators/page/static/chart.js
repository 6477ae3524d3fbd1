// What happened over minutes, hours and days: lines in SVG whose legend is the read-out, and a table of the same numbers.

import { brief, clock, day, el, local, number, plain, rate, show, svg } from "./dom.js";
import { get, query, serverNow } from "./net.js";
import { dialog, iconButton, segment, table } from "./parts.js";
import { lateButton } from "./rights.js";

/** A line: its word, how it looks (a class of style.css), and its value at a point, if there is one.
 * @typedef {{word: string, look: string, of: (point: any) => number | undefined}} Series */
/** What a chart shows: `title` names the unit. A logarithmic one is of milliseconds; `gap` fills between the first two lines.
 * @typedef {{title: string, series: Series[], log?: boolean, gap?: boolean, figure: (n: number) => string}} Subject */
/** Points at even distances. Of the last one's time `open_ms` have passed.
 * @typedef {{points: any[], step_ms: number, open_ms?: number, marks?: {at: number, text: string}[]}} Course */

const RANGES = { "5m": "5 m", "1h": "1 h", "24h": "24 h", "7d": "7 d" };
const EVERY_MS = 10_000;
const LEAST_OPEN_MS = 10_000;
const NEAR_MARKS_PX = 70;
const NEAR_CROSS_PX = 48;
const TICKS = 6;
const DAY_MS = 86_400_000;
const STEPS = [1, 2, 3, 4, 5, 6, 8, 10];

/** A third of the scale: the least round number of which three reach the top. @param {number} top */
function third(top) {
  const power = 10 ** Math.floor(Math.log10(top / 3));
  return power * /** @type {number} */ (STEPS.find((each) => each * power * 3 >= top * 0.999));
}

/** The word of a power of ten of milliseconds. @param {number} power */
const decade = (power) => ["1 ms", "10 ms", "100 ms", "1 s", "10 s", "100 s", "17 min", "2.8 h", "28 h", "12 d"][power] ?? "";

/** How the numbers of a chart lie between its foot (0) and its top (100). @param {Subject} subject @param {Course} course */
function scaleOf({ series, log, figure }, { points }) {
  const values = points.flatMap((point) => series.map(({ of }) => of(point))).filter((n) => n !== undefined);
  if (!log) {
    const part = third(Math.max(...values, 0.3));
    return { lines: [3, 2, 1, 0].map((n) => figure(n * part)), of: (/** @type {number} */ n) => (100 * n) / (3 * part) };
  }
  const powers = values.map((n) => Math.log10(Math.max(n, 1)));
  const foot = Math.min(Math.floor(Math.min(...powers, 3)), 6);
  const top = Math.max(Math.ceil(Math.max(...powers, 0)), foot + 2);
  return { lines: Array.from({ length: top - foot + 1 }, (_, at) => decade(top - at)),
    of: (/** @type {number} */ n) => (100 * (Math.log10(Math.max(n, 1)) - foot)) / (top - foot) };
}

/** What several charts point at together: the place of a point, or nothing for now. */
export class Crosshair {
  constructor() {
    this.at = /** @type {number | null} */ (null);
    this.charts = /** @type {Chart[]} */ ([]);
  }

  /** @param {number | null} at */
  point(at) {
    if (at === this.at) return;
    this.at = at;
    for (const chart of this.charts) chart.read();
  }
}

/** One chart. `draw` shows a course; its place is a figure of the width of its box. */
export class Chart {
  /** @param {Subject} subject @param {Crosshair} [crosshair] */
  constructor(subject, crosshair = new Crosshair()) {
    this.subject = subject;
    this.crosshair = crosshair;
    crosshair.charts.push(this);
    this.course = /** @type {Course} */ ({ points: [], step_ms: 1 });
    this.scale = scaleOf(subject, this.course);
    this.when = el("span", { class: "muted" });
    this.legend = el("dl", { class: "readout" });
    this.y = el("ol", { class: "y", "aria-hidden": "true" });
    this.lines = svg("svg", { class: "lines", viewBox: "0 0 1000 100", preserveAspectRatio: "none", "aria-hidden": "true" });
    this.labels = svg("svg", { class: "labels", "aria-hidden": "true" });
    this.canvas = el("div", { class: "canvas", role: "slider", tabindex: "0", "aria-label": `${subject.title}: arrow keys move the read-out`,
      "aria-valuemin": 0, "aria-valuenow": 0, onpointermove: (/** @type {any} */ event) => this.follow(event), onpointerdown: (/** @type {any} */ event) => this.follow(event),
      onpointerleave: () => this.crosshair.point(null), onkeydown: (/** @type {any} */ event) => this.key(event) }, this.lines, this.labels);
    this.twin = el("div", { class: "twin", hidden: true });
    this.more = iconButton("more", `As a table: ${subject.title}`, () => this.turnTwin(), { "aria-expanded": "false" });
    this.place = el("figure", { class: "card chart", "data-own": "", "aria-label": subject.title }, el("header", {}, el("h2", {}, subject.title), this.when, this.legend, this.more),
      el("div", { class: "plot" }, this.y, this.canvas), this.twin);
  }

  /** @param {Course} course */
  draw(course) {
    const most = course.points.length - 1;
    if (this.crosshair.at !== null && this.crosshair.at > most) this.crosshair.at = null;
    this.course = course;
    this.scale = scaleOf(this.subject, course);
    this.y.replaceChildren(...this.scale.lines.map((word) => el("li", {}, word)));
    this.canvas.setAttribute("aria-valuemax", String(Math.max(most, 0)));
    this.read();
    if (!this.twin.hidden) this.drawTwin();
  }

  /** The rate of a point whose time is not over says little while that is short. */
  get last() {
    const { points, open_ms: open } = this.course;
    return points.length - (open !== undefined && open < LEAST_OPEN_MS ? 2 : 1);
  }

  /** Show what is pointed at: all of the picture depends on it, and it is small. */
  read() {
    const { points } = this.course;
    if (!points.length) return;
    const { at } = this.crosshair;
    const shown = Math.max(at ?? this.last, 0);
    const point = points[shown];
    this.when.textContent = `${at === null ? "now" : `at ${this.tick(point.at)}`}${this.subject.log ? ", log scale" : ""}`;
    const values = this.subject.series.map(({ word, look, of }) => ({ word, look, text: this.figure(of(point)) }));
    show(this.legend, values.map(({ word, look, text }) => el("div", { class: look }, el("dt", {}, word), el("dd", {}, text))));
    this.canvas.setAttribute("aria-valuenow", String(shown));
    this.canvas.setAttribute("aria-valuetext", `${at === null ? "now" : this.tick(point.at)}: ${values.map(({ word, text }) => `${word} ${text}`).join(", ")}`);
    this.lines.replaceChildren(...this.drawLines(at));
    this.labels.replaceChildren(...this.drawLabels(at));
  }

  /** @param {number | undefined} n */
  figure(n) {
    return n === undefined ? "–" : this.subject.figure(n);
  }

  /** @param {number} at The place of a point. */
  x(at) {
    return ((at + 0.5) * 1000) / this.course.points.length;
  }

  /** @param {number} n */
  y100(n) {
    return (100 - Math.min(this.scale.of(n), 100)).toFixed(1);
  }

  /** The word of a moment on the axis. @param {number} ms */
  tick(ms) {
    const { points, step_ms: step } = this.course;
    const over = points.length * step;
    if (over > 2 * DAY_MS) return step >= 3_600_000 && this.crosshair.at !== null ? `${day(ms)} ${clock(ms).slice(0, 5)}` : day(ms);
    return step < 60_000 ? clock(ms) : clock(ms).slice(0, 5);
  }

  /** @param {number | null} at */
  drawLines(at) {
    const { points, open_ms: open } = this.course;
    const many = this.scale.lines.length - 1;
    const path = (/** @type {string} */ look, /** @type {string} */ d) => svg("path", { class: look, d });
    const made = this.scale.lines.map((_, n) => path("grid", `M0 ${((100 * n) / many).toFixed(1)}H1000`));
    if (at !== null) made.push(path("ln cross", `M${this.x(at)} 0V100`));
    if (this.subject.gap) made.push(...this.gaps().map((d) => path("gap", d)));
    for (const { look, of } of this.subject.series) {
      const closed = open === undefined ? points.length : points.length - 1;
      const d = this.joined(points.slice(0, closed).map(of));
      if (d) made.push(path(`ln ${look}`, d));
      const ends = [closed - 1, closed].map((n) => points[n] && of(points[n]));
      if (closed < points.length && this.last === closed && ends[1] !== undefined) {
        made.push(path(`ln open ${look}`, `M${this.x(closed - 1)} ${this.y100(ends[0] ?? ends[1])}L${this.x(closed)} ${this.y100(ends[1])}`));
      }
      const pointed = at !== null && (at <= this.last ? of(points[at]) : undefined);
      if (pointed !== false && pointed !== undefined) made.push(path(`pt ${look}`, `M${this.x(/** @type {number} */ (at))} ${this.y100(pointed)}h0`));
    }
    for (const { x } of this.marks()) made.push(path("ln mark", `M${x * 1000} 0V100`));
    return made;
  }

  /** The line through values; where there is none, it has a gap. @param {(number | undefined)[]} values */
  joined(values) {
    let d = "";
    values.forEach((n, at) => {
      if (n === undefined) return;
      const alone = values[at - 1] === undefined && values[at + 1] === undefined;
      d += `${at && values[at - 1] !== undefined ? "L" : "M"}${this.x(at).toFixed(1)} ${this.y100(n)}${alone ? "h1" : ""}`;
    });
    return d;
  }

  /** Where more comes than is done: of this a backlog is made. */
  gaps() {
    const [above, below] = this.subject.series.map(({ of }) => this.course.points.slice(0, this.last + 1).map((point) => of(point) ?? 0));
    const found = /** @type {string[]} */ ([]);
    for (let from = 0; from < above.length; from += 1) {
      let to = from;
      while (to < above.length && above[to] > below[to]) to += 1;
      if (to - from > 1) {
        const places = Array.from({ length: to - from }, (_, n) => from + n);
        const along = (/** @type {number[]} */ values, /** @type {number[]} */ of) => of.map((n) => `${this.x(n).toFixed(1)} ${this.y100(values[n])}`).join("L");
        found.push(`M${along(above, places)}L${along(below, places.toReversed())}Z`);
      }
      from = Math.max(to, from);
    }
    return found;
  }

  /** The marks in sight from left to right; those whose names would lie over each other are one. */
  marks() {
    const { points, step_ms: step, marks = [] } = this.course;
    const wide = this.canvas.clientWidth || 640;
    const found = /** @type {{x: number, marks: {at: number, text: string}[]}[]} */ ([]);
    for (const mark of marks.toSorted((one, other) => one.at - other.at)) {
      const x = (mark.at - points[0].at) / (step * points.length);
      const before = found.at(-1);
      if (x < 0 || x > 1) continue;
      if (before && (x - before.x) * wide < NEAR_MARKS_PX) before.marks.push(mark);
      else found.push({ x, marks: [mark] });
    }
    return found;
  }

  /** @param {number | null} at */
  drawLabels(at) {
    const { points, open_ms: open, step_ms: step } = this.course;
    const wide = this.canvas.clientWidth || 640;
    const share = (/** @type {number} */ n) => `${((100 * n) / points.length).toFixed(2)}%`;
    const made = [];
    if (open !== undefined) made.push(svg("rect", { class: "openb", fill: "url(#hatch)", x: share(points.length - 1), y: 20, width: share(1) }));
    for (const { x, marks } of this.marks()) {
      const text = marks.length > 1 ? `${marks.length} marks` : plain(marks[0].text.slice(0, 24));
      made.push(svg("text", { class: "mark-text", x: `${(100 * x).toFixed(2)}%`, y: 13, "text-anchor": x * wide > wide - NEAR_MARKS_PX ? "end" : "start",
        onclick: marks.length > 1 && (() => listMarks(marks)) }, `▾ ${text}`));
    }
    const ticks = Math.max(Math.min(TICKS, Math.floor(wide / 90)), 1);
    for (let n = 0; n <= ticks; n += 1) {
      const place = Math.round((n * points.length) / ticks);
      if (at !== null && Math.abs(place - at - 0.5) * (wide / points.length) < NEAR_CROSS_PX) continue;
      made.push(svg("text", { x: share(place), y: "100%", dy: -4, "text-anchor": n === 0 ? "start" : n === ticks ? "end" : "middle" },
        this.tick(points[0].at + place * step)));
    }
    if (at !== null) {
      const text = this.tick(points[at].at);
      const half = 4 + text.length * 3.2;
      const x = Math.min(Math.max(((at + 0.5) * wide) / points.length, half), wide - half);
      made.push(svg("svg", { x, y: "100%", overflow: "visible" }, svg("rect", { class: "cross-bg", x: -half, y: -17, width: 2 * half, height: 16, rx: 3 }),
        svg("text", { class: "cross-text", y: -5, "text-anchor": "middle" }, text)));
    }
    return made;
  }

  /** @param {PointerEvent} event */
  follow(event) {
    const box = this.canvas.getBoundingClientRect();
    const many = this.course.points.length;
    if (many) this.crosshair.point(Math.min(Math.max(Math.floor(((event.clientX - box.left) / box.width) * many), 0), many - 1));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const most = this.course.points.length - 1;
    const now = this.crosshair.at ?? this.last;
    const to = { ArrowLeft: Math.max(now - 1, 0), ArrowRight: Math.min(now + 1, most), Home: 0, End: most, Escape: null }[event.key];
    if (to === undefined || most < 0) return;
    event.preventDefault();
    this.crosshair.point(to);
  }

  turnTwin() {
    this.twin.hidden = !this.twin.hidden;
    this.more.setAttribute("aria-expanded", String(!this.twin.hidden));
    if (!this.twin.hidden) this.drawTwin();
  }

  drawTwin() {
    const { points, marks = [] } = this.course;
    const { series, title } = this.subject;
    show(this.twin, table({ caption: title, columns: [{ head: "from" }, ...series.map(({ word }) => ({ head: word, is: "num w6" }))],
      rows: points.toReversed().map((point) => ({ key: String(point.at), cells: [local(point.at), ...series.map(({ of }) => this.figure(of(point)))] })) }),
    marks.length ? el("ul", { class: "body" }, marks.map(({ at, text }) => el("li", {}, `${local(at)}: ${plain(text)}`))) : null);
  }
}

/** @param {{at: number, text: string}[]} marks */
function listMarks(marks) {
  const box = dialog({ title: `${marks.length} marks`, keep: "Close", buttons: [], act: () => box.close(),
    parts: [el("ul", { class: "part" }, marks.map(({ at, text }) => el("li", {}, `${local(at)}: ${plain(text)}`)))] });
}

/** The rates and waits of one queue, or of all together, in two charts with one crosshair.
 * `place` has both; `ranges` the choice of the range. `learn` asks again when it is time for that, so each frame may call it. */
export class History {
  /** @param {string} [queue] @param {(range: string) => void} [chosen] Told of the range that somebody has chosen. */
  constructor(queue, chosen = () => {}) {
    this.queue = queue;
    this.chosen = chosen;
    this.range = "1h";
    this.asked = 0;
    const crosshair = new Crosshair();
    const count = (/** @type {string} */ word, /** @type {string} */ look, /** @type {string} */ field) => ({ word, look, of: (/** @type {any} */ point) => point.rates?.[field] });
    const wait = (/** @type {"p50" | "p95" | "p99"} */ share) => ({ word: share, look: share, of: (/** @type {any} */ point) => point.wait?.[share] });
    this.rates = new Chart({ title: "Jobs a second", gap: true, figure: rate,
      series: [count("in", "in", "enqueued"), count("done", "done", "completed"), count("failed", "failed", "failed")] }, crosshair);
    this.waits = new Chart({ title: "Wait until delivery", log: true, figure: brief, series: [wait("p99"), wait("p95"), wait("p50")] }, crosshair);
    this.said = el("div");
    this.place = el("div", { "data-own": "", class: "charts" }, el("div", { class: "two" }, this.rates.place, this.waits.place), this.said);
    this.ranges = el("div", { "data-own": "" });
    this.showRanges();
  }

  showRanges() {
    show(this.ranges, segment("Range of the charts", Object.keys(RANGES), this.range, (range) => this.choose(range), RANGES));
  }

  /** @param {string} range */
  choose(range) {
    this.range = range;
    this.chosen(range);
    this.showRanges();
    this.refresh();
  }

  refresh() {
    this.asked = 0;
    return this.learn();
  }

  /** Ask again, if it is time for that. */
  async learn() {
    const { range } = this;
    if (Date.now() - this.asked < (range === "5m" ? EVERY_MS / 2 : EVERY_MS)) return;
    this.asked = Date.now();
    try {
      const found = await get(`stats/history${query({ queue: this.queue, range })}`);
      if (range === this.range) this.draw(found);
      show(this.said);
    } catch (error) {
      show(this.said, el("p", { class: "muted", role: "status" }, `The charts are of ${this.learnt ? clock(this.learnt) : "never"}: ${/** @type {Error} */ (error).message}`));
    }
  }

  /** @param {any} found */
  draw(found) {
    this.learnt = serverNow();
    const open = found.points.length - 1;
    for (const [at, point] of found.points.entries()) {
      const ms = at === open && found.open_ms !== undefined ? found.open_ms : found.step_ms;
      const part = (/** @type {string} */ field) => (point[field] * 1000) / Math.max(ms, 1);
      // A rate of less than ten seconds jumps.
      point.rates = at === open && ms < LEAST_OPEN_MS ? {} : { enqueued: part("enqueued"), completed: part("completed"), failed: part("failed") };
    }
    this.rates.draw(found);
    this.waits.draw(found);
    this.course = found;
  }
}

/** A button that names a moment, for all charts. @param {() => void} after */
export const markButton = (after) => lateButton("manage", "Mark this moment…", () => import("./actions.js"), ({ confirm, quoted }) => confirm({
  title: "Mark this moment", say: "Charts show the name, such as that of a release that was deployed.", button: "Mark it",
  fields: [{ name: "text", label: "Name", kind: "text", required: "A mark needs a name, such as that of the release." }], filled: (/** @type {any} */ { text }) => ({ zq: `zq mark ${quoted(text)}`, body: { text } }),
  method: "POST", path: "marks", body: { text: "" }, done: (/** @type {any} */ mark) => `${mark.text} is marked.`,
}, after), { class: "ghost small" });
