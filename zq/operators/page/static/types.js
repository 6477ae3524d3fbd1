// Types of jobs: how long they run, how many come and fail, the slowest or the most failing ones first.

import { Asked } from "./asked.js";
import { brief, el, number, plain, rate, show } from "./dom.js";
import { lineOf } from "./filter.js";
import { get, query } from "./net.js";
import { percent } from "./overview.js";
import { briefly, button, empty, iconButton, name, queueName, segment, table } from "./parts.js";

const RANGES = ["1h", "24h", "7d"];
const SHORT = { "1h": "1 h", "24h": "24 h", "7d": "7 d" };
const WORDS = { "1h": "hour", "24h": "day", "7d": "week" };

/** So many a second that one digit says enough, or so few that two are needed. @param {number} n */
const few = (n) => (n > 0 && n < 0.1 ? n.toFixed(2) : rate(n));

/** From here on so many attempts fail that somebody should look. */
export const MANY_FAIL = 0.2;

/** @param {number | undefined} share */
const failedShare = (share) => (share === undefined ? "–" : el("span", { class: share >= MANY_FAIL ? "bad" : null }, percent(share)));

/** The types of one queue, or of all. `draw` is called with each frame. */
export class TypesTable {
  /** @param {string} [queue] */
  constructor(queue) {
    this.queue = queue;
    this.range = "1h";
    this.sort = "slowest";
    this.asked = new Asked(() => this.make(), 10_000);
    this.ranges = el("span");
    this.chosen = /** @type {{type: string, queue?: string} | null} */ (null);
    this.chart = el("div");
    this.course = /** @type {TypeCourse | null} */ (null);
    this.place = el("div", {}, this.chart, this.asked.place, el("div", { class: "foot" }, this.asked.age, el("span", { class: "push" }, this.ranges)));
  }

  /** Draw the course of a type over the table, or of none. @param {{type: string, queue?: string} | null} chosen */
  async choose(chosen) {
    this.chosen = chosen;
    this.course = null;
    if (chosen) this.course = new TypeCourse(chosen, await import("./chart.js"), () => this.choose(null));
    // Somebody has pressed for it: it does not wait until the pointer leaves the row.
    this.chart.replaceChildren(...this.course ? [this.course.place] : []);
    this.asked.again();
  }

  draw() {
    this.asked.draw();
  }

  /** @param {Partial<{range: string, sort: string}>} change */
  turn(change) {
    Object.assign(this, change);
    this.asked.again();
  }

  /** @param {any} row */
  isChosen({ type, queue }) {
    return this.chosen?.type === type && this.chosen?.queue === (queue ?? this.queue);
  }

  async make() {
    await this.course?.learn(this.range);
    const { types } = await get(`stats/types${query({ range: this.range, queue: this.queue, sort: this.sort })}`);
    const own = this.queue !== undefined;
    show(this.ranges, segment("Range of the types", RANGES, this.range, (range) => this.turn({ range }), SHORT));
    return table({
      caption: `Types of jobs${own ? ` of ${this.queue}` : ""}, ${ORDERS[this.sort]} first`,
      columns: [{ head: "type" }, ...own ? [] : [{ head: "queue", is: "w12 c2" }],
        { head: "done/s", is: "num w6", sort: "rate" }, { head: "done", is: "num w6 c3" },
        { head: "failed", is: "num w6 c3" }, { head: "failed %", is: "num w6", sort: "failing" },
        { head: "run p50", is: "num w6 c1" }, { head: "p95", is: "num w5", sort: "slowest" }, { head: "p99", is: "num w5 c2" }, { spoken: "actions", is: "do wact" }],
      rows: types.map((/** @type {any} */ each) => ({ key: `${each.queue ?? ""} ${each.type}`, here: this.isChosen(each), cells: [
        name(each.type, `jobs${query({ f: lineOf({ type: each.type, queue: each.queue ?? this.queue }) })}`),
        ...own ? [] : [each.queue ? queueName(each.queue) : "–"], few(each.rate), number(each.done), number(each.failed),
        failedShare(each.failed_share), briefly(each.run?.p50), briefly(each.run?.p95), briefly(each.run?.p99),
        button("Chart", () => this.choose(this.isChosen(each) ? null : { type: each.type, queue: each.queue ?? this.queue }),
          { class: "small keep", "aria-pressed": String(this.isChosen(each)), "aria-label": `Chart of ${plain(each.type)}${each.queue ? ` in ${plain(each.queue)}` : ""}` })] })),
      sorted: `-${this.sort}`, sort: (by) => this.turn({ sort: by.replace("-", "") }),
      nothing: empty("No job has ended", `in the last ${WORDS[/** @type {keyof WORDS} */ (this.range)]}${own ? " in this queue" : ""}.`) });
  }
}

const ORDERS = /** @type {Record<string, string>} */ ({ slowest: "the slowest", failing: "the most failing", rate: "the most frequent" });

/** How jobs of one type ended, and how long they ran, in two charts. */
class TypeCourse {
  /** @param {{type: string, queue?: string}} of @param {typeof import("./chart.js")} charts @param {() => void} close */
  constructor(of, { Chart, Crosshair }, close) {
    this.of = of;
    this.range = "";
    const crosshair = new Crosshair();
    const rateOf = (/** @type {"done" | "failed"} */ field) => ({ word: field, look: field, of: (/** @type {any} */ point) => point.rates?.[field] });
    const runOf = (/** @type {"p50" | "p95" | "p99"} */ share) => ({ word: share, look: share, of: (/** @type {any} */ point) => point.run?.[share] });
    this.rates = new Chart({ title: `Ended a second: ${plain(of.type)}`, figure: few, series: [rateOf("done"), rateOf("failed")] }, crosshair);
    this.runs = new Chart({ title: `Run time: ${plain(of.type)}`, log: true, figure: brief, series: [runOf("p99"), runOf("p95"), runOf("p50")] }, crosshair);
    this.place = el("section", { "data-own": "", class: "body", "aria-label": `Course of ${plain(of.type)}` },
      el("div", { class: "bar" }, el("h2", { class: "cut" }, plain(of.type)), el("span", { class: "push" }, iconButton("close", "Close the charts", close))),
      el("div", { class: "two" }, this.rates.place, this.runs.place));
  }

  /** @param {string} range */
  async learn(range) {
    this.range = range;
    const found = await get(`stats/types${query({ ...this.of, range })}`);
    if (range !== this.range) return;
    const open = found.points.length - 1;
    for (const [at, point] of found.points.entries()) {
      const ms = at === open ? found.open_ms : found.step_ms;
      const part = (/** @type {number} */ n) => (n * 1000) / Math.max(ms, 1);
      point.rates = { done: part(point.done), failed: part(point.failed) };
    }
    this.rates.draw(found);
    this.runs.draw(found);
  }
}
