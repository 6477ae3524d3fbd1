// A line chart in SVG: a title, a sentence, and a table with the same numbers.

import { el, number, rate, show, table } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 640;
const HEIGHT = 120;
const MOST_POINTS = 300;

/** @param {string} tag @param {Record<string, any>} attributes @param {string} [text] */
function shape(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  if (text) made.textContent = text;
  return made;
}

/** Rates since the page was opened, from counters that only grow. */
export class Rates {
  /** @param {[string, string][]} series Field and word of each line. */
  constructor(series) {
    this.series = series;
    /** @type {{at: number, values: number[]}[]} */
    this.points = [];
    /** @type {{at: number, counts: number[]} | null} */
    this.last = null;
    this.keys = el("figcaption");
    this.picture = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "chart" });
    this.rows = el("div");
    /** It stays in the page, so that focus does. */
    this.figure = el("figure", {}, this.keys, this.picture,
      el("details", {}, el("summary", {}, "Table"), this.rows));
  }

  /** @param {any} document @param {number} at */
  learn(document, at) {
    const counts = this.series.map(([field]) => document[field] ?? 0);
    const last = this.last;
    if (last && at - last.at < 900) return;
    if (last && counts.every((n, i) => n >= last.counts[i])) {
      const seconds = (at - last.at) / 1000;
      this.points.push({ at, values: counts.map((n, i) => (n - last.counts[i]) / seconds) });
      if (this.points.length > MOST_POINTS) this.points.shift();
    }
    this.last = { at, counts };
  }

  draw() {
    const top = Math.max(...this.points.flatMap((point) => point.values), 1);
    const title = "Jobs a second since this page was opened";
    const now = this.points.at(-1)?.values ?? this.series.map(() => 0);
    const summary = this.series.map(([, word], i) => `${word} ${rate(now[i])}/s`).join(", ");
    const picture = this.picture;
    picture.replaceChildren(shape("title", {}, title),
      shape("text", { x: 2, y: 12, class: "axis" }, `${number(Math.ceil(top))}/s`),
      shape("line", { x1: 0, x2: WIDTH, y1: HEIGHT - 1, y2: HEIGHT - 1, class: "axis" }));
    picture.setAttribute("aria-label", `${title}: ${summary}`);
    this.series.forEach(([field], i) => {
      const points = this.points.map((point, at) => {
        const x = WIDTH - (this.points.length - 1 - at) * (WIDTH / MOST_POINTS);
        return `${x.toFixed(1)},${(HEIGHT - 2 - (point.values[i] / top) * (HEIGHT - 20)).toFixed(1)}`;
      });
      if (points.length > 1) {
        picture.append(shape("polyline", { points: points.join(" "), class: `line ${field}` }));
      }
    });
    const rows = this.points.slice(-60).reverse().map((point) => ({
      key: String(point.at),
      cells: [new Date(point.at).toLocaleTimeString("en-GB"), ...point.values.map(rate)],
    }));
    show(this.keys, `${title}: `, this.series.map(([field, word], i) =>
      el("span", { class: `key ${field}` }, `${word} ${rate(now[i])} `)));
    show(this.rows, table(title, ["time", ...this.series.map(([, word]) => word)], rows));
  }
}
