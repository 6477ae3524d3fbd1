// The fields of forms: what is typed is read, or refused in words, where it is typed.

import { el } from "./dom.js";

const UNITS = /** @type {Record<string, number>} */ ({ ms: 1, s: 1e3, sec: 1e3, m: 6e4, min: 6e4, minute: 6e4, minutes: 6e4,
  h: 36e5, hour: 36e5, hours: 36e5, d: 864e5, day: 864e5, days: 864e5, w: 6048e5, week: 6048e5, weeks: 6048e5,
  second: 1e3, seconds: 1e3 });

/**
 * The milliseconds of a span of time, such as `1h 30m`, `90 min` or `5400 s`.
 * @param {string} text
 */
export function duration(text) {
  const wrong = () => new Error(/^\s*\d+(\.\d+)?\s*$/.test(text)
    ? `Which unit? Write ${text.trim()} s, ${text.trim()} min or ${text.trim()} h.`
    : `“${text}” is no span of time: write it as 90 min, 1h 30m or 7 d.`);
  if (!/^\s*(\d+(\.\d+)?\s*[a-z]+[\s,]*)+$/i.test(text)) throw wrong();
  let sum = 0;
  for (const [, count, unit] of text.matchAll(/(\d+(?:\.\d+)?)\s*([a-z]+)/gi)) {
    if (!Object.hasOwn(UNITS, unit.toLowerCase())) throw wrong();
    sum += Number(count) * UNITS[unit.toLowerCase()];
  }
  return Math.round(sum);
}

const LETTERS = /** @type {[string, number][]} */ ([["d", 864e5], ["h", 36e5], ["min", 6e4], ["s", 1e3], ["ms", 1]]);

/** A span of time as people write it, and as `duration` reads it. @param {number} ms */
export function spanned(ms) {
  const parts = [];
  for (const [unit, size] of LETTERS) {
    const count = Math.floor(ms / size);
    if (count) parts.push(`${count} ${unit}`);
    ms -= count * size;
  }
  return parts.join(" ") || "0 s";
}

/** A span of time as the command line reads it: in one unit. @param {number} ms */
export function oneUnit(ms) {
  const [unit, size] = [["h", 36e5], ["m", 6e4], ["s", 1e3]].find(([, each]) => ms % Number(each) === 0) ?? ["ms", 1];
  return `${ms / Number(size)}${unit}`;
}

/** Says of a text that is a time why it is no number. @param {string} text @param {string} example */
const noNumber = (text, example) => {
  let time = "";
  try {
    duration(text);
    if (/[a-z]/i.test(text)) time = ` “${text}” is a time.`;
  } catch {
    // It is something else.
  }
  return new Error(`${example}.${time}`);
};

/** A number of things. @param {string} text */
export function whole(text) {
  if (!/^\s*\d{1,10}\s*$/.test(text)) throw noNumber(text, "A whole number, such as 5");
  return Number(text);
}

/** @param {string} text */
export function atLeastOne(text) {
  const found = whole(text);
  if (!found) throw new Error("At least 1. Leave it empty for no limit.");
  return found;
}

/** @param {string} text */
export function positive(text) {
  if (!/^\s*\d+(\.\d+)?\s*$/.test(text) || !Number(text)) throw noNumber(text, "A number above 0, such as 40 or 0.5");
  return Number(text);
}

/** @param {string} text */
export function fromZero(text) {
  if (!/^\s*\d+(\.\d+)?\s*$/.test(text)) throw noNumber(text, "A number, such as 2 or 0.5");
  return Number(text);
}

/** Texts apart from commas. @param {string} text */
export const listed = (text) => text.split(",").map((each) => each.trim()).filter(Boolean);

/** How a kind of field reads what is typed, and writes what is stored.
 * @type {Record<string, {read: (text: string) => any, write: (value: any) => string, mode: string}>} */
const KINDS = {
  duration: { read: duration, write: spanned, mode: "text" },
  whole: { read: whole, write: String, mode: "numeric" },
  some: { read: atLeastOne, write: String, mode: "numeric" },
  positive: { read: positive, write: String, mode: "decimal" },
  part: { read: fromZero, write: String, mode: "decimal" },
  text: { read: (text) => text.trim(), write: String, mode: "text" },
  list: { read: listed, write: (value) => value.join(", "), mode: "text" },
  choice: { read: JSON.parse, write: String, mode: "text" },
};

/** @typedef {{name: string, label: string, kind: keyof KINDS, unit?: string, value?: any, placeholder?: string,
 *   help?: string | ((value: any) => any), choices?: [string, string][], required?: string, stays?: boolean}} FieldPlan
 * `value` is as the server has it. `help` may tell what a value means. `required` says what is missing.
 * With `stays`, another value is not marked as a change. */

let made = 0;

/** One field: its label, what is typed, its unit, and what that means or why it cannot be. */
export class Field {
  /** @param {FieldPlan} plan @param {() => void} [heard] Called after each change. */
  constructor(plan, heard) {
    this.plan = plan;
    this.kind = KINDS[plan.kind];
    const id = `f-${plan.name}-${made += 1}`;
    const attributes = { id, name: plan.name, "aria-describedby": `${id}-h`, autocomplete: "off", spellcheck: "false",
      oninput: () => this.check(false, heard), onblur: () => this.check(true, heard) };
    this.box = plan.choices
      ? el("select", { ...attributes, onchange: () => this.check(true, heard) },
        plan.choices.map(([value, word]) => el("option", { value }, word)))
      : el("input", { ...attributes, inputmode: this.kind.mode, placeholder: plan.placeholder });
    this.said = el("p", { id: `${id}-h`, class: "help" });
    this.place = el("div", { class: "field", "data-setting": plan.name }, el("label", { for: id }, plan.label),
      el("div", { class: "with" }, this.box, plan.unit && el("span", {}, plan.unit)), this.said);
    this.begin(plan.value);
  }

  /** The value that the server has. @param {any} stored */
  begin(stored) {
    this.stored = stored ?? null;
    this.box.value = this.written(this.stored);
    this.check(false);
  }

  /** The server has another value now: what is typed stays. @param {any} stored */
  follow(stored) {
    if (JSON.stringify(stored ?? null) === JSON.stringify(this.stored)) return;
    if (this.changed) this.stored = stored ?? null;
    else this.begin(stored);
    this.check(false);
  }

  /** @param {any} value */
  written(value) {
    return value === null ? "" : this.kind.write(value);
  }

  /** What is typed, as the server wants it; null if nothing is. Raises an Error that says what would be right. */
  get value() {
    const text = this.box.value;
    if (!text.trim()) {
      if (this.plan.required) throw new Error(this.plan.required);
      return null;
    }
    return this.kind.read(text);
  }

  /** Why what is typed cannot be; "" if it can. */
  get wrong() {
    try {
      void this.value;
      return "";
    } catch (error) {
      return /** @type {Error} */ (error).message;
    }
  }

  get changed() {
    try {
      return JSON.stringify(this.value) !== JSON.stringify(this.stored);
    } catch {
      return true;
    }
  }

  /** Mark a change, and tell what it means. An error is told as one leaves the field.
   * @param {boolean} left @param {() => void} [heard] */
  check(left, heard) {
    const wrong = this.wrong;
    const shown = wrong && (left || this.box.getAttribute("aria-invalid") === "true");
    if (shown) this.box.setAttribute("aria-invalid", "true");
    else this.box.removeAttribute("aria-invalid");
    this.place.classList.toggle("changed", !this.plan.stays && !wrong && this.changed);
    this.said.className = shown ? "error" : "help";
    this.said.replaceChildren(...(shown ? [wrong] : this.told(wrong)).flat().filter(Boolean));
    this.said.hidden = !this.said.childNodes.length;
    heard?.();
  }

  /** @param {string} wrong */
  told(wrong) {
    const { help, stays } = this.plan;
    const meant = typeof help === "function" ? (wrong ? "" : help(this.value)) : help;
    if (wrong || stays || !this.changed) return [meant];
    return [`was ${this.stored === null ? "not set" : this.written(this.stored)}. `, meant];
  }

  /** Check as if one had left it. Say whether it can be sent. */
  ready() {
    this.check(true);
    if (this.wrong) this.box.focus();
    return !this.wrong;
  }
}
