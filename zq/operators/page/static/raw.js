// JSON as the server has sent it: no number is rounded, no key is dropped, and nothing in it is hidden.

import { el, plain } from "./dom.js";

/** Where a string of JSON ends that begins at a place: its length does not matter, nor what is in it.
 * @param {string} text @param {number} at */
function endOfString(text, at) {
  for (let end = text.indexOf('"', at + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text[end - 1 - slashes] === "\\") slashes += 1;
    if (slashes % 2 === 0) return end + 1;
  }
  return text.length;
}

const WORD = /[{}[\]:,]|[^\s"{}[\]:,]+/gy;

/**
 * The members of an object with their names, or those of a list, each as its text.
 * @param {string} text @returns {Generator<[string, string]>}
 */
export function* members(text) {
  let [depth, key, start, last] = [0, "", -1, ""];
  for (let at = 0; at < text.length;) {
    if (/\s/.test(text[at])) {
      at += 1;
      continue;
    }
    WORD.lastIndex = at;
    const token = text[at] === '"' ? text.slice(at, endOfString(text, at)) : WORD.exec(text)?.[0];
    if (!token) return;
    const closes = token === "}" || token === "]";
    if (depth === 1 && (token === "," || closes)) {
      if (start >= 0 && text.slice(start, at).trim()) yield [key, text.slice(start, at).trim()];
      start = text[0] === "[" ? at + 1 : -1;
    } else if (depth === 1 && token === ":" && start < 0) {
      key = JSON.parse(last);
      start = at + 1;
    } else if (depth === 0 && token === "[") {
      start = at + 1;
    }
    depth += token === "{" || token === "[" ? 1 : closes ? -1 : 0;
    last = token;
    at += token.length;
  }
}

/** The text of a field. @param {string} text A JSON object. @param {string} field */
export function rawField(text, field) {
  for (const [key, value] of members(text)) if (key === field) return value;
  return undefined;
}

/** JSON in one line, without its spaces. @param {string} text */
export const compact = (text) => text.replace(/("[^"\\]*(?:\\.[^"\\]*)*")|\s+/g, "$1");

// A string that is cut off goes on to the end: otherwise each quote within it would be tried as a beginning.
const TOKEN = /("[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?$))(\s*:)?|(-?\d[\d.eE+-]*)|(true|false|null)|([{[])\s*([}\]])?|([}\]])|(,)\s*/g;
const HIDDEN = '"\u2022\u2022\u2022"';

/** How many fields the server has hidden. @param {string} text */
export const hiddenIn = (text) => text.split(HIDDEN).length - 1;

/** JSON as lines with colours. @param {string} text */
export function printed(text) {
  const made = /** @type {(Node | string)[]} */ ([]);
  let [at, depth] = [0, 0];
  const line = (/** @type {number} */ deeper) => {
    depth = Math.max(depth + deeper, 0);
    return `\n${"  ".repeat(depth)}`;
  };
  for (const found of text.matchAll(TOKEN)) {
    made.push(plain(text.slice(at, found.index).trim()));
    at = (found.index ?? 0) + found[0].length;
    const [all, string, colon, number, word, opens, empty, closes, comma] = found;
    if (colon) made.push(el("span", { class: "k" }, plain(string)), ": ");
    else if (string) made.push(all === HIDDEN ? el("span", { class: "h" }, "hidden") : plain(string));
    else if (number || word) made.push(number ? el("span", { class: "n" }, all) : all);
    else if (opens) made.push(empty ? opens + empty : opens + line(1));
    else if (closes) made.push(line(-1) + closes);
    else if (comma) made.push(`,${line(0)}`);
  }
  made.push(plain(text.slice(at).trim()));
  return made;
}
