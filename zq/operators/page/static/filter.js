// The filter line: what it means, where it is wrong, and how it may go on.

import { number, zone } from "./dom.js";
import { get, query } from "./net.js";

/** A part of the line: a name with its value, or a word without a name.
 * @typedef {{name: string, value: string, quoted: boolean, from: number, to: number}} Term */

/** What is wrong with the line, and where. */
export class Misread extends Error {
  /** @param {{from: number, to: number}} term @param {string} text */
  constructor(term, text) {
    super(text);
    this.from = term.from;
    this.to = term.to;
  }
}

export const STATUSES = ["scheduled", "ready", "in_flight", "completed", "dead", "cancelled", "expired"];

/** The parameter of the server that a term stands for. */
const NAMES = /** @type {Record<string, string>} */ ({ queue: "queue", type: "type", status: "status", group: "group", id: "id",
  cause: "error", attempts: "attempts", priority: "priority", budget: "budgets.key" });
const RANGES = ["attempts", "priority"];
const TIMES = ["age", "since", "until"];
const KNOWN = [...Object.keys(NAMES), ...TIMES, "payload.KEY"];
const ID = /^[0-9A-HJKMNP-TV-Z]{26}$|^[0-9a-z]{25}$/;
const TERM = /(?:([a-z_]+(?:\.(?:"[^"]*"|[^\s":])*)?):)?("(?:\\"|[^"])*"?|[^\s"]\S*|(?=\s|$))/gi;
const UNITS = /** @type {Record<string, number>} */ ({ s: 1e3, m: 6e4, h: 36e5, d: 864e5, w: 6048e5 });
const DAY_MS = 864e5;

/** The parts of a line, in their order. Everything behind `payload:` is one expression of jq. @param {string} line */
export function termsOf(line) {
  const terms = /** @type {Term[]} */ ([]);
  TERM.lastIndex = 0;
  while (TERM.lastIndex < line.length) {
    const found = /** @type {RegExpExecArray} */ (TERM.exec(line));
    if (!found) break;
    const [all, name = "", raw] = found;
    if (!all) {
      TERM.lastIndex += 1;
      continue;
    }
    const term = { name, value: raw, quoted: raw.startsWith('"'), from: found.index, to: found.index + all.length };
    if (name === "payload") {
      term.value = line.slice(term.to - raw.length).trim();
      term.quoted = false;
      term.to = TERM.lastIndex = line.length;
    } else if (term.quoted) {
      if (raw.length < 2 || !raw.endsWith('"') || raw.endsWith('\\"')) throw new Misread(term, "The quotation mark is not closed.");
      term.value = raw.slice(1, -1).replaceAll('\\"', '"');
    }
    terms.push(term);
  }
  return terms;
}

/**
 * The parameters that a filter line stands for. Raises `Misread`: a term that is empty, unknown, or
 * written twice would mean other jobs than its writer sees.
 * @param {string} line @param {number} now Of the server, in ms.
 */
export function parseFilter(line, now) {
  const found = /** @type {Record<string, string>} */ ({});
  const seen = /** @type {Set<string>} */ (new Set());
  const time = { low: -Infinity, high: Infinity };
  const words = /** @type {string[]} */ ([]);
  const programs = /** @type {string[]} */ ([]);
  for (const term of termsOf(line)) {
    const { name, value } = term;
    if (!value.trim() || (!term.quoted && /^,+$/.test(value))) {
      throw new Misread(term, name ? `${name} is empty: say which jobs are meant, or take the term out.`
        : "Nothing stands between the quotation marks.");
    }
    if (!name && !ID.test(value)) {
      words.push(term.quoted && /\s/.test(value) ? `"${value}"` : value);
      continue;
    }
    const own = name === "age" ? `age:${value[0]}` : name || "id";
    if (seen.has(own)) throw new Misread(term, twice(own, name || "id"));
    seen.add(own);
    if (TIMES.includes(name)) between(time, term, now);
    else if (name === "payload") programs.push(value);
    else if (name.startsWith("payload.")) programs.push(payloadProgram(term));
    else if (RANGES.includes(name)) found[NAMES[name]] = range(term);
    else if (Object.hasOwn(NAMES, own)) found[NAMES[own]] = checked(term, own);
    else throw new Misread(term, `There is no ${name}: the names are ${KNOWN.join(", ")}. Words with a colon go between quotation marks.`);
  }
  if (time.low > -Infinity || time.high < Infinity) {
    found.ready_at = `${time.low > -Infinity ? time.low : ""}..${time.high < Infinity ? time.high : ""}`;
  }
  if (programs.length) found.filter = programs.length > 1 ? programs.map((each) => `(${each})`).join(" and ") : programs[0];
  if (words.length) found.search = words.join(" ");
  return found;
}

/** @param {string} own @param {string} name */
const twice = (own, name) => (own.startsWith("age:") ? `${own} is written twice: one of them is enough.`
  : RANGES.includes(name) ? `${name} is written twice: for an interval, write ${name}:3..5.`
    : name in NAMES ? `${name} is written twice: for several, write ${name}:one,another.` : `${name} is written twice.`);

/** @param {Term} term @param {string} name */
function checked(term, name) {
  const parts = term.value.split(",");
  if (parts.some((part) => !part.trim())) throw new Misread(term, `${name} has an empty part: take out a comma.`);
  for (const part of parts) {
    if (name === "status" && !STATUSES.includes(part)) {
      throw new Misread(term, `There is no status “${part}”: they are ${STATUSES.join(", ")}.`);
    }
    if (name === "id" && !ID.test(part)) throw new Misread(term, `“${part}” is no id: an id has 26 letters and digits.`);
  }
  return term.value;
}

/** @param {Term} term */
function range(term) {
  const { name, value } = term;
  const [, sign, bound] = /^([<>])(\d+)$/.exec(value) ?? [];
  if (sign === ">") return `${Number(bound) + 1}..`;
  if (sign && Number(bound) > 0) return `..${Number(bound) - 1}`;
  const [, low, high] = /^(\d*)\.\.(\d*)$/.exec(value) ?? [];
  if (!/^\d+$/.test(value) && !low && !high) {
    throw new Misread(term, `${name} is a whole number or an interval: ${name}:3, ${name}:3..5, ${name}:3.., ${name}:>2.`);
  }
  if (low && high && Number(low) > Number(high)) throw new Misread(term, `No number is from ${low} to ${high}.`);
  return value;
}

/** Narrow an interval of times by a term. @param {{low: number, high: number}} time @param {Term} term @param {number} now */
function between(time, term, now) {
  const { name, value } = term;
  const old = value.startsWith(">");
  const at = name === "age" ? now - (/^[<>]/.test(value) ? lasting(value.slice(1)) : NaN) : moment(value, now);
  if (Number.isNaN(at)) {
    throw new Misread(term, name === "age" ? "age is written as age:>1h or age:<10m; both together are an interval."
      : `${name} is written as ${name}:yesterday, ${name}:today, ${name}:2h or ${name}:2026-11-25T10:00.`);
  }
  if (name === "until" || (name === "age" && old)) time.high = Math.min(time.high, Math.round(at));
  else time.low = Math.max(time.low, Math.round(at));
  if (time.low > time.high) throw new Misread(term, "No job is in this time: its end is before its beginning.");
}

/** A duration such as 90m or 1h30m, in ms; NaN if it is none. @param {string} text */
function lasting(text) {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)([smhdw])/g)];
  return parts.length && parts.map(([all]) => all).join("") === text
    ? parts.reduce((sum, [, n, unit]) => sum + Number(n) * UNITS[unit], 0) : NaN;
}

/** A time in the zone of the page: a day, a time, or how long ago. @param {string} text @param {number} now */
function moment(text, now) {
  const utc = zone.name === "UTC";
  const today = new Date(now);
  if (utc) today.setUTCHours(0, 0, 0, 0);
  else today.setHours(0, 0, 0, 0);
  if (text === "now") return now;
  if (text === "today") return today.getTime();
  if (text === "yesterday") {
    if (utc) return today.getTime() - DAY_MS;
    return new Date(today.getFullYear(), today.getMonth(), today.getDate() - 1).getTime();
  }
  const [, date, clock, ending] = /^(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d(?::\d\d)?))?(Z?)$/.exec(text) ?? [];
  if (date) return Date.parse(`${date}T${clock ?? "00:00"}${ending || utc ? "Z" : ""}`);
  return now - lasting(text);
}

/** Jobs whose payload has a value at a key: a number, a text and a word are written alike. @param {Term} term */
function payloadProgram(term) {
  const keys = [...term.name.slice("payload.".length).matchAll(/"([^"]*)"|([^."]+)/g)].map(([, quoted, plain]) => quoted ?? plain);
  if (!keys.length) throw new Misread(term, "Say which key of the payload: payload.user:7.");
  return `(.${keys.map((key) => `[${JSON.stringify(key)}]?`).join("")} | tostring) == ${JSON.stringify(term.value)}`;
}

/** A value as it stands in a line. @param {string} value */
const written = (value) => (/[\s"]/.test(value) || !value ? `"${value.replaceAll('"', '\\"')}"` : value);

/**
 * The line with another value of a term, in the old place of the term; without it if there is no value.
 * @param {string} line @param {string} name @param {string} value
 */
export function withTerm(line, name, value) {
  const term = termsOf(line).find((each) => each.name === name);
  const text = value && `${name}:${written(value)}`;
  if (!term) {
    const at = termsOf(line).find((each) => each.name === "payload")?.from ?? line.length;
    return [line.slice(0, at).trim(), text, line.slice(at)].filter(Boolean).join(" ");
  }
  return [line.slice(0, term.from).trim(), text, line.slice(term.to).trim()].filter(Boolean).join(" ");
}

/** The value of a term, or nothing. @param {string} line @param {string} name */
export const valueOf = (line, name) => termsOf(line).find((term) => term.name === name)?.value ?? "";

/** The line that stands for parameters. A time has no line that stays true: it is told in words.
 * @param {Record<string, string>} filter */
export function lineOf(filter) {
  const names = Object.entries(NAMES).flatMap(([name, parameter]) => (filter[parameter] ? [`${name}:${written(filter[parameter])}`] : []));
  if (filter.ready_at) {
    const [low, high] = filter.ready_at.split("..");
    if (low) names.push(`since:${stamp(low)}`);
    if (high) names.push(`until:${stamp(high)}`);
  }
  return [...names, filter.search, filter.filter && `payload:${filter.filter}`].filter(Boolean).join(" ");
}

/** @param {string} ms */
const stamp = (ms) => `${new Date(Number(ms)).toISOString().slice(0, 19)}Z`;

/** A value to go on with: `value` is written, if it is not the text itself; `n` counts jobs.
 * @typedef {{text: string, value?: string, n?: number}} Suggestion */

/** How the line may go on at its end: the whole line, and what it means.
 * @param {string} line @returns {Promise<{line: string, label?: string}[]>} */
export async function suggestions(line) {
  const [, head, name, start] = /** @type {RegExpExecArray} */ (/^(.*?)(?:([a-z_]+(?:\.[^\s":]*)?):)?("?[^\s"]*)$/is.exec(line));
  const typed = start.replace(/^"/, "");
  if (!name) {
    if (typed.startsWith("payload.")) return payloadKeys(head, typed);
    return [...Object.keys(NAMES), ...TIMES].map((each) => `${each}:`).concat("payload.")
      .filter((each) => each.startsWith(typed.toLowerCase())).map((each) => ({ line: head + each }));
  }
  const [, before, last] = /** @type {RegExpExecArray} */ (/^(.*,)?([^,]*)$/s.exec(typed));
  const values = FIXED[name]?.filter((each) => each.startsWith(last)).map((text) => /** @type Suggestion} */ ({ text })) ?? await stored(name, last, head);
  return values.map(({ text, value, n }) => ({ line: `${head}${name}:${written((before ?? "") + (value ?? text))}`, label: label(value && text, n) }));
}

const FIXED = /** @type {Record<string, string[] | undefined>} */ ({ age: [">1h", ">1d", "<10m"], since: ["yesterday", "today", "1h", "2h"],
  until: ["yesterday", "today", "1h"], attempts: ["0", "1..", ">3"], status: STATUSES });

/** @param {string} head @param {string} typed */
const payloadKeys = async (head, typed) => (await stored("payload", typed.slice("payload.".length), head))
  .map(({ text }) => ({ line: `${head}payload.${/^[^\s":.]+$/.test(text) ? text : `"${text}"`}:` }));

/** What the server knows to go on with. @param {string} field @param {string} q @param {string} head What stands before.
 * @returns {Promise<Suggestion[]>} */
async function stored(field, q, head) {
  let queue = "";
  try {
    queue = field === "queue" ? "" : valueOf(head, "queue");
  } catch {
    // What stands before is not finished.
  }
  try {
    return (await get(`suggest${query({ field, q, queue })}`)).values;
  } catch {
    return [];
  }
}

/** What stands beside an option of the list. @param {string | undefined} text @param {number | undefined} n */
const label = (text, n) => [text, n !== undefined && `${number(n)} ${text ? "failures" : "jobs"}`].filter(Boolean).join(", ") || undefined;
