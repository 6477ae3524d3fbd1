// The components of the page. Each is drawn anew with each frame, and `show` of dom.js keeps what is the same.

import { brief, copy, el, fill, held, plain, show, svg } from "./dom.js";

/** @typedef {import("./dom.js").Child} Child */

// Small things

/** @type {Record<string, string[]>} */
const ICONS = {
  close: ["m4 4 8 8M12 4l-8 8"], more: ["M3.5 8h.01M8 8h.01M12.5 8h.01"], copy: ["M5.5 5.5h8v8h-8zM10.5 3.5v-1h-8v8h1"],
  up: ["m4 10 4-4 4 4"], down: ["m4 6 4 4 4-4"], out: ["M9 3h4v4M13 3 7 9M11 9v4H3V5h4"], pause: ["M5.5 3.5v9M10.5 3.5v9"],
  play: ["M5 3.5v9l7-4.5z"],
};

/** A picture of 16 px in the colour of its text: `icon("close")`. @param {keyof typeof ICONS} name */
export const icon = (name) => svg("svg", { class: "i", viewBox: "0 0 16 16", "aria-hidden": "true" },
  ICONS[name].map((d) => svg("path", { d, "stroke-width": name === "more" ? 2.4 : null })));

/** A button: `button("Requeue 3…", act, { class: "solid" })`. Further attributes as for `el`; `title` says why one is `disabled`.
 * @param {Child} label @param {(event: any) => void} act @param {Record<string, any>} [more] */
export const button = (label, act, { class: look = "", ...more } = {}) =>
  el("button", { type: "button", class: `btn ${look}`.trim(), onclick: act, ...more }, label);

/** A button without a word: `iconButton("close", "Close (Esc)", act)`.
 * @param {keyof typeof ICONS} name @param {string} label @param {(event: any) => void} act @param {Record<string, any>} [more] */
export const iconButton = (name, label, act, { class: look = "ghost small", ...more } = {}) =>
  el("button", { type: "button", class: `btn icon ${look}`.trim(), "aria-label": label, title: label, onclick: act, ...more }, icon(name));

/** A name that somebody has given: cut off at its box, whole in its title, with nothing hidden in it.
 * `name("mail")`, or a link by `name("mail", "queue?name=mail")`.
 * @param {string} text @param {string} [place] @param {string} [shown] Another text than the whole one. */
export function name(text, place, shown = text) {
  const attributes = { class: "cut", title: plain(text) };
  return place === undefined ? el("span", attributes, plain(shown)) : el("a", { ...attributes, href: `#/${place}` }, plain(shown));
}

/** @param {string} queue */
export const queuePlace = (queue) => `queue?name=${encodeURIComponent(queue)}`;

/** The name of a queue as a link to its page. @param {string} queue */
export const queueName = (queue) => name(queue, queuePlace(queue));

/** What tells an id apart from the others on the page: its end is the server's own, its beginning the day. @param {string} id */
export const short = (id) => (id.length > 12 ? `…${id.slice(6, 14)}` : id);

/** A short id as a link, and a button that copies the whole one.
 * @param {string} id @param {string} [place] Where the link leads. */
export const shortId = (id, place = `job?id=${encodeURIComponent(id)}`) => [
  el("a", { class: "id", href: `#/${place}`, title: id }, short(id)),
  iconButton("copy", `Copy id ${short(id)}`, () => copied(id, "The id is copied."), { class: "ghost small copy", "data-verb": "copy" })];

/** What each status and state looks like: a shape, and how it is called if not by its own name. @type {Record<string, [string, string?]>} */
const SHAPES = {
  scheduled: ["M9 5a4 4 0 1 1-8 0a4 4 0 1 1 8 0M5 3v2l1.4 1"], ready: ["M8.6 5a3.6 3.6 0 1 1-7.2 0a3.6 3.6 0 1 1 7.2 0"],
  in_flight: ["M2.5 1.5 8.5 5l-6 3.5z", "in flight"], completed: ["m1.5 5.2 2.4 2.4 4.6-5"], dead: ["m2 2 6 6M8 2 2 8"],
  cancelled: ["M1.5 5h7"], expired: ["M2 1.2h6L2 8.8h6z"], paused: ["M3 1.5v7M7 1.5v7"], ok: ["m1.5 5.2 2.4 2.4 4.6-5"],
  alarm: ["m5 .8 4.2 4.2L5 9.2.8 5z"], warning: ["M5 1.3 9.2 8.7H.8z"],
};

/** A status or state as a shape and a word: `pill("in_flight")`, or one that is worse by `pill("alarm", "no worker")`.
 * @param {string} status @param {string} [word] */
export const pill = (status, word) => el("span", { class: `pill ${status}`, "data-status": status },
  Object.hasOwn(SHAPES, status) && svg("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" },
    svg("path", { d: SHAPES[status][0], class: status === "alarm" ? "f" : null })),
  el("span", {}, word ?? SHAPES[status]?.[1] ?? status.replace("_", " ")));

/** A choice over a list, which is pressed or not: `chip([pill("dead"), " ", el("b", {}, "2,029")], true, turn)`.
 * @param {Child | Child[]} content @param {boolean} pressed @param {(event: any) => void} turn @param {Record<string, any>} [more] */
export const chip = (content, pressed, turn, more = {}) =>
  el("button", { type: "button", class: "chip", "aria-pressed": String(pressed), onclick: turn, ...more }, content);

/** One of a few: `segment("Range of the charts", ["5m", "1h"], "1h", choose)`.
 * @param {string} label @param {string[]} values @param {string} chosen @param {(value: string) => void} choose @param {Record<string, string>} [words] */
export const segment = (label, values, chosen, choose, words = {}) => el("div", { class: "segment", role: "group", "aria-label": label },
  values.map((value) => el("button", { type: "button", "aria-pressed": String(value === chosen), "data-value": value,
    onclick: () => choose(value) }, words[value] ?? value)));

/** A share as a bar: `meter(3, 16)`. @param {number} n @param {number} of @param {string} [label] */
export const meter = (n, of, label = `${n} of ${of}`) => svg("svg", { class: `meter${n >= of ? " full" : ""}`, viewBox: "0 0 100 6",
  preserveAspectRatio: "none", role: "img", "aria-label": label },
svg("rect", { width: of ? Math.min(100, (100 * n) / of).toFixed(1) : 0, height: 6 }));

/** A small course without a scale: a line, or bars. Its label says in words what it shows.
 * @param {number[]} values @param {string} label @param {{bars?: boolean, hot?: boolean}} [look] */
export function spark(values, label, { bars = false, hot = false } = {}) {
  const top = Math.max(...values, 1e-9);
  const wide = 100 / Math.max(bars ? values.length : values.length - 1, 1);
  const y = (/** @type {number} */ n) => (17 - (n / top) * 16);
  return svg("svg", { class: `spark${hot ? " hot" : ""}`, viewBox: "0 0 100 18", preserveAspectRatio: "none", role: "img", "aria-label": label },
    bars ? values.map((n, at) => svg("rect", { x: (at * wide).toFixed(1), y: Math.min(y(n), 17.2).toFixed(1), width: (wide * 0.72).toFixed(1),
      height: (18 - Math.min(y(n), 17.2)).toFixed(1) }))
      : svg("path", { d: `M${values.map((n, at) => `${(at * wide).toFixed(1)} ${y(n).toFixed(1)}`).join("L")}` }));
}

/** One figure: its name, the figure, its unit, and a line of what it means. Without `value` it is unknown.
 * @param {{label: string, value?: string, unit?: string, note?: Child | Child[], bad?: boolean, warn?: boolean, place?: string, picture?: Child}} tile */
export const tile = ({ label, value, unit, note, bad, warn, place, picture }) => el(place ? "a" : "div",
  { class: "tile", href: place && `#/${place}`, "data-key": label },
  el("span", { class: "label" }, label), el("strong", {}, value ?? "–", value && unit ? [" ", el("span", { class: "unit" }, unit)] : null),
  picture, el("small", { class: bad ? "bad" : warn ? "warn" : "muted" }, note));

/** A part of a page with a heading: `card("Queues", "14", [table(…)], link(…))`.
 * @param {string} title @param {Child | Child[]} note @param {Child | Child[]} content @param {Child | Child[]} [push] What stands at the right of the heading. */
export const card = (title, note, content, push) => el("section", { class: "card", "aria-label": title },
  el("header", {}, el("h2", {}, title), note ? el("span", { class: "muted" }, note) : null, push ? el("span", { class: "push" }, push) : null), content);

// Table

/** A column. `is` has its classes: a width of style.css for all but one column, `num`, `st`, and `c4` to `c1` for what leaves first.
 * Without `head` it has `spoken` alone. One with `sort` is a button; `title` explains it.
 * @typedef {{head?: Child, spoken?: string, is?: string, sort?: string, title?: string, names?: boolean}} Column */
/** A row. `here` is the open one, `selected` a ticked one. Its cell in the column that `names` it, or else the first that is not a tick, has the link of the row.
 * @typedef {{key: string, cells: (Child | Child[])[], here?: boolean, selected?: boolean}} Line */

/** A table with fixed columns. No row moves under the pointer or with focus; those that come meanwhile are counted.
 *
 * `table({ caption: "Queues, by jobs waiting", columns: [{ head: "queue", is: "wname" }, { head: "waiting", is: "num w6", sort: "waiting" }],
 *   rows: [{ key: "mail", cells: [queueName("mail"), "4"] }], sorted: "-waiting", sort: turn, nothing: empty("No queue has jobs") })`.
 * `sorted` is the column in whose order the rows are, with a `-` if the greatest comes first; `sort` is called with the next such word.
 * Cells of columns with `tick` and `do` in their classes are for a box and for buttons.
 * @param {{caption: string, columns: Column[], rows: Line[], sorted?: string, sort?: (by: string) => void, nothing?: Child, noheads?: boolean, busy?: boolean}} of */
export function table({ caption, columns, rows, sorted = "", sort, nothing, noheads, busy }) {
  const naming = Math.max(columns.findIndex(({ names }) => names), columns.findIndex(({ is = "" }) => !is.split(" ").includes("tick")));
  const line = (/** @type {Line} */ { key, cells, here, selected }) => el("tr",
    { "data-key": key, class: here ? "here" : null, "aria-selected": selected === undefined ? null : String(selected) },
    cells.map((cell, at) => el(at === naming ? "th" : "td", { scope: at === naming && "row", class: columns[at].is?.replace(/\bw(?!act)\w*/g, "").trim() || null }, cell)));
  return el("div", { class: "wide", "data-key": caption },
    el("button", { type: "button", class: "chip news", hidden: true, "data-stay": "news", title: "Let the rows move, and show those that have come", onclick: release }),
    el("table", { class: noheads ? "noheads" : null }, el("caption", { class: "spoken" }, caption),
      el("thead", {}, el("tr", {}, columns.map((column) => heading(column, sorted, sort)))),
      el("tbody", { "aria-busy": busy ? "true" : null }, rows.map(line))), rows.length ? null : nothing);
}

/** @param {Column} column @param {string} sorted @param {((by: string) => void) | undefined} turn */
function heading({ head, spoken, is, sort, title }, sorted, turn) {
  const now = sort && sorted.replace("-", "") === sort;
  const falls = sorted.startsWith("-");
  const word = head ?? el("span", { class: "spoken" }, spoken);
  return el("th", { scope: "col", class: is, title, "aria-sort": now ? falls ? "descending" : "ascending" : null },
    sort && turn ? el("button", { type: "button", "data-sort": sort, onclick: () => turn(now && falls ? sort : `-${sort}`) }, word) : word);
}

/** Let the rows of all tables move again. */
function release() {
  held.pointed = null;
  if (held.focused?.contains(document.activeElement)) /** @type {HTMLElement} */ (document.activeElement).blur();
  held.focused = null;
  document.dispatchEvent(new Event("released"));
}

/** The verbs of a row that do not fit: `menu("More for mail", [["Enqueue…", act], ["Settings", "queue?name=mail&tab=settings"]])`.
 * A text instead of a function is a place. What changes something has its scope as the third. The label must be the only such one on the page.
 * @param {string} label @param {([string, string | ((event: any) => void), string?] | null | false)[]} items */
export const menu = (label, items) => [iconButton("more", plain(label), (event) => openMenu(event.currentTarget, items), { class: "small keep", title: "More", "aria-haspopup": "true" })];

/** A menu is made when it is opened: most are not. @param {HTMLElement} source @param {Parameters<typeof menu>[1]} items */
function openMenu(source, items) {
  const list = el("ul", { class: "menu", popover: "auto", ontoggle: (/** @type {any} */ event) => event.newState === "closed" && list.remove() },
    items.map((item) => item && el("li", {}, typeof item[1] === "string" ? el("a", { href: `#/${item[1]}`, onclick: () => list.hidePopover() }, item[0])
      : el("button", { type: "button", "data-scope": item[2], onclick: (/** @type {any} */ event) => {
        list.hidePopover();
        /** @type {any} */ (item[1])(event);
      } }, item[0]))));
  document.body.append(list);
  list.showPopover({ source });
  list.querySelector("a, button")?.focus();
}

/** What is ticked, at the foot of its list: `selection("3 selected", [verbs], clear, button("Select all 1,727 that match", all))`.
 * @param {Child} text @param {Child[]} verbs Buttons with their numbers; the first is the solid one. @param {() => void} clear @param {Child} [all] */
export const selection = (text, verbs, clear, all) => el("div", { class: "selection", role: "region", "aria-label": "Selection" },
  el("b", { role: "status" }, text), all, el("span", { class: "push acts" }, verbs, iconButton("close", "Clear the selection", clear, { class: "ghost", "data-verb": "clear" })));

/** What is open beside its list. Esc closes it; the address should name it. Put list and panel into a `div.split`.
 * @param {string} label @param {Child[]} head @param {Child[]} sections `section` elements. @param {() => void} close @param {Child[]} [more] Buttons before ×. */
export const panel = (label, head, sections, close, more = []) => el("aside", { class: "card panel", "aria-label": label },
  el("header", {}, el("div", { class: "crumb" }, head), el("span", { class: "push acts" }, more, iconButton("close", "Close (Esc)", close, { "data-verb": "close" }))),
  sections);

/** Parts of a page, each with an address: `tabs("Parts of the queue", [["jobs", "Jobs", "24,021"]], "jobs", (tab) => place({ tab }))`.
 * @param {string} label @param {[string, string, string?][]} parts Name, word, count. @param {string} current @param {(tab: string) => string} place */
export const tabs = (label, parts, current, place) => el("nav", { class: "tabs", "aria-label": label }, parts.map(([tab, word, count]) =>
  el("a", { href: `#/${place(tab)}`, "aria-current": tab === current ? "page" : null }, word, count ? [" ", el("span", { class: "count" }, count)] : null)));

// What is not there, or not yet

/** Nothing, why, and the one step on: `empty("No job matches", "There is no queue “mial”. Did you mean ", link(…), "?")`.
 * @param {string} title @param {...(Child | Child[])} more */
export const empty = (title, ...more) => el("div", { class: "empty" }, el("b", {}, title), ...more);

/** What comes, in its shape. @param {number} [rows] @param {number} [columns] */
export const skeleton = (rows = 3, columns = 4) => el("div", { class: "wide skeletons" }, el("table", {}, el("tbody", {}, Array.from({ length: rows }, () =>
  el("tr", {}, Array.from({ length: columns }, () => el("td", {}, el("span", { class: "skeleton" }))))))));

/** What is true of the whole page or of a part: `banner("Read-only.", "This key changes nothing.", { button: button(…) })`.
 * One whose title changes has a `key` that does not.
 * @param {string} title @param {Child | Child[]} text @param {{failed?: boolean, inner?: boolean, button?: Child, key?: string}} [more] */
export const banner = (title, text, { failed, inner, button: step, key = title } = {}) => el("div", { class: `banner${failed ? " failed" : ""}${inner ? " inner" : ""}`, "data-key": key },
  el("b", {}, title), " ", el("span", {}, text), step ? el("span", { class: "push" }, step) : null);

// What floats

/** A text with nothing hidden in it; elements stay as they are. @param {Child | undefined} text */
const plainly = (text) => (typeof text === "string" ? plain(text) : text);

const MOST_TOASTS = 3;
const TOAST_MS = 8000;
const UNDO_MS = 30_000;

/** Say what was done, with the way back: `toast("300 jobs of mail are cancelled.", { button: ["Undo", undo] })`.
 * It goes after 8 s, or 30 s with a button, unless it is pointed at; one that has `failed` stays until it is closed.
 * @param {Child} text @param {{failed?: boolean, button?: [string, () => void]}} [more] */
export function toast(text, { failed = false, button: step } = {}) {
  const place = /** @type {Element} */ (document.getElementById("toasts"));
  const box = el("p", { class: `toast${failed ? " failed" : ""}`, role: failed ? "alert" : null }, el("span", {}, plainly(text)));
  const go = () => box.remove();
  fill(box, step && button(step[0], () => {
    go();
    step[1]();
  }, { class: "small push" }), (failed || step) && iconButton("close", "Close this message", go, { class: step ? "small" : "small push" }));
  const held_ = () => box.matches(":hover, :focus-within");
  const end = () => (held_() ? setTimeout(end, 1000) : go());
  if (!failed) setTimeout(end, step ? UNDO_MS : TOAST_MS);
  place.append(box);
  while (place.childElementCount > MOST_TOASTS) place.firstElementChild?.remove();
  return box;
}

/** Copy a text, and say so, or that it cannot be. @param {string} text @param {string} said */
export const copied = (text, said) => copy(text).then(() => toast(said), () => toast("The browser lets this page copy nothing.", { failed: true }));

/** A dialog: consequence first. Its form has `parts`, and a foot with `keep` that closes it and the `buttons`, the last of which acts.
 * Focus is in the first field; Enter acts only if nothing is destroyed (`destroys`). A refusal: `box.refuse(text)`. It goes by `box.close()`.
 * @param {{title: string, say?: Child | Child[], parts?: Child[], buttons: Child[], keep?: string, destroys?: boolean, act: () => void}} of
 * @returns {any} */
export function dialog({ title, say, parts = [], buttons, keep = "Cancel", destroys = false, act }) {
  const back = /** @type {HTMLElement | null} */ (document.activeElement);
  const refused = el("p", { class: "bad", role: "alert" });
  const env = /** @type {HTMLElement} */ (document.getElementById("environment"));
  const box = el("dialog", { "aria-labelledby": "dialog-title", "aria-describedby": say ? "dialog-say" : null }, el("form", {
    method: "dialog",
    onsubmit: (/** @type {Event} */ event) => {
      event.preventDefault();
      refused.textContent = "";
      act();
    },
    onkeydown: (/** @type {any} */ event) => {
      if (destroys && event.key === "Enter" && event.target.nodeName === "INPUT") event.preventDefault();
    },
  }, el("header", { class: "bar" }, el("h2", { id: "dialog-title" }, plain(title)), env.textContent ? el("span", { class: "env push" }, env.textContent) : null),
  say ? el("div", { class: "part" }, el("p", { id: "dialog-say" }, [say].flat().map(plainly))) : null, parts,
  el("div", { class: "part refusal" }, refused),
  el("footer", {}, button(keep, () => box.close()), el("span", { class: "push acts" }, buttons))));
  box.refuse = (/** @type {string} */ text) => {
    refused.textContent = plain(text);
  };
  box.onclose = () => {
    box.remove();
    back?.focus();
  };
  document.body.append(box);
  box.showModal();
  (box.querySelector("input, select, textarea") ?? box.querySelector("footer button"))?.focus();
  return box;
}

/** `2 ms` or a dash. @param {number | undefined} ms */
export const briefly = (ms) => (ms === undefined ? "–" : brief(ms));
