// The filter line: what it means, and how it may go on.

import { get } from "./net.js";

const NAMES = { status: "status", queue: "queue", type: "type", group: "group", id: "id", error: "error",
  priority: "priority", attempts: "attempts", budget: "budgets.key", payload: "filter" };
const UNITS = /** @type {Record<string, number>} */ ({ s: 1e3, m: 6e4, h: 36e5, d: 864e5 });

/**
 * The parameters that a filter line stands for. Raises an Error that says what is wrong.
 * @param {string} line @param {number} now
 */
export function parseFilter(line, now) {
  const found = /** @type {Record<string, string>} */ ({});
  const payload = /(^|\s)payload:(.+)$/.exec(line);
  if (payload) {
    found.filter = payload[2].trim();
    line = line.slice(0, payload.index);
  }
  for (const [, name, value] of line.matchAll(/(?:(\w+):)?("[^"]*"|\S+)/g)) {
    const text = value.startsWith('"') ? value.slice(1, -1) : value;
    if (!name) {
      found[/^[0-9a-z]{25,26}$/i.test(text) ? "id" : "type"] = text;
    } else if (name === "age") {
      const age = /^([<>])(\d+)([smhd])$/.exec(text);
      if (!age) throw new Error("age is written as age:>1h or age:<10m");
      const at = now - Number(age[2]) * UNITS[age[3]];
      found.ready_at = age[1] === ">" ? `..${at}` : `${at}..`;
    } else if (name in NAMES) {
      found[NAMES[/** @type {keyof NAMES} */ (name)]] = text;
    } else {
      throw new Error(`${name} is unknown: use ${Object.keys(NAMES).join(", ")} or age`);
    }
  }
  return found;
}

const STATUSES = ["dead", "ready", "scheduled", "in_flight", "completed", "cancelled", "expired"];
const MOST_WORDS = 20;
let queues = /** @type {Promise<string[]> | null} */ (null);

/** The lines that this one may become by its last word. @param {string} line @param {string[]} types */
export async function suggestions(line, types) {
  const [, head, name, start] = /** @type {RegExpExecArray} */ (/^(.*?)(?:(\w+):)?(\S*)$/.exec(line));
  if (!name) return Object.keys(NAMES).concat("age").filter((each) => each.startsWith(start)).map((each) => `${head}${each}:`);
  if (name === "queue") queues ??= get("queues").then((found) => found.queues);
  const words = name === "queue" ? await /** @type {Promise<string[]>} */ (queues)
    : { status: STATUSES, type: types, age: [">1h", ">1d", "<10m"], attempts: ["1.."] }[name] ?? [];
  return words.filter((word) => word.startsWith(start)).slice(0, MOST_WORDS)
    .map((word) => `${head}${name}:${/\s/.test(word) ? `"${word}"` : word}`);
}
