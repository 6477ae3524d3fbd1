// Types of jobs: how long they run, how many come and fail, the slowest or the most failing ones first.

import { Asked } from "./asked.js";
import { el, number, rate, show } from "./dom.js";
import { lineOf } from "./filter.js";
import { get, query } from "./net.js";
import { percent } from "./overview.js";
import { briefly, empty, name, queueName, segment, table } from "./parts.js";

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
    this.place = el("div", {}, this.asked.place, el("div", { class: "foot" }, this.asked.age, el("span", { class: "push" }, this.ranges)));
  }

  draw() {
    this.asked.draw();
  }

  /** @param {Partial<{range: string, sort: string}>} change */
  turn(change) {
    Object.assign(this, change);
    this.asked.again();
  }

  async make() {
    const { types } = await get(`stats/types${query({ range: this.range, queue: this.queue, sort: this.sort })}`);
    const own = this.queue !== undefined;
    show(this.ranges, segment("Range of the types", RANGES, this.range, (range) => this.turn({ range }), SHORT));
    return table({
      caption: `Types of jobs${own ? ` of ${this.queue}` : ""}, ${ORDERS[this.sort]} first`,
      columns: [{ head: "type" }, ...own ? [] : [{ head: "queue", is: "w12 c2" }],
        { head: "done/s", is: "num w6", sort: "rate" }, { head: "done", is: "num w6 c3" },
        { head: "failed", is: "num w6 c3" }, { head: "failed %", is: "num w6", sort: "failing" },
        { head: "run p50", is: "num w6 c1" }, { head: "p95", is: "num w5", sort: "slowest" }, { head: "p99", is: "num w5 c2" }],
      rows: types.map((/** @type {any} */ each) => ({ key: `${each.queue ?? ""} ${each.type}`, cells: [
        name(each.type, `jobs${query({ f: lineOf({ type: each.type, queue: each.queue ?? this.queue }) })}`),
        ...own ? [] : [each.queue ? queueName(each.queue) : "–"], few(each.rate), number(each.done), number(each.failed),
        failedShare(each.failed_share), briefly(each.run?.p50), briefly(each.run?.p95), briefly(each.run?.p99)] })),
      sorted: `-${this.sort}`, sort: (by) => this.turn({ sort: by.replace("-", "") }),
      nothing: empty("No job has ended", `in the last ${WORDS[/** @type {keyof WORDS} */ (this.range)]}${own ? " in this queue" : ""}.`) });
  }
}

const ORDERS = /** @type {Record<string, string>} */ ({ slowest: "the slowest", failing: "the most failing", rate: "the most frequent" });
