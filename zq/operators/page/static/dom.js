// Elements, words and numbers. Text enters the page as text only.

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * Make an element. A name that begins with "on" is a listener.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {any}
 */
export const el = (tag, attributes = {}, ...children) => build(document.createElement(tag), attributes, children);

/** An element of a picture, made as `el` makes one.
 * @param {string} tag @param {Record<string, any>} [attributes] @param {...(Child | Child[])} children @returns {any} */
export const svg = (tag, attributes = {}, ...children) =>
  build(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

/** The names of the listeners of each element that has any: `update` hands them on.
 * @type {WeakMap<Node, string[]>} */
const listeners = new WeakMap();

/** @param {any} made @param {Record<string, any>} attributes @param {(Child | Child[])[]} children */
function build(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) {
      made[name] = value;
      listeners.set(made, [...listeners.get(made) ?? [], name]);
    } else made.setAttribute(name, value === true ? "" : String(value));
  }
  return fill(made, ...children);
}

/**
 * @param {Element} parent
 * @param {...(Child | Child[])} children
 */
export function fill(parent, ...children) {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return parent;
}

/** The row or line under the pointer, or else the one with focus or with the selected text. While there is one, nothing moves: who clicks, hits
 * what they saw, and a row that moves would lose its selection. */
export const held = {
  pointed: /** @type {Element | null} */ (null),
  focused: /** @type {Element | null} */ (null),
  selected: /** @type {Element | null} */ (null),
  get row() {
    return [this.pointed, this.focused, this.selected].find((each) => each?.isConnected) ?? null;
  },
};

/**
 * Replace what a place shows, unless that is the same. Focus and the row under the pointer stay.
 * @param {Element} place
 * @param {...(Child | Child[])} children
 */
export function show(place, ...children) {
  const next = document.createElement("div");
  fill(next, ...children);
  // Another part of the page must not push the row away, but one that has shown nothing yet has to begin.
  const isShown = place.firstElementChild && !place.firstElementChild.classList.contains("skeletons");
  if (held.row && isShown && !place.contains(held.row) && next.childElementCount !== place.childElementCount) return;
  settle(place, next);
}

/**
 * Make one element look like another, and keep every node that can stay.
 * @param {Element} old
 * @param {Element} next
 */
function settle(old, next) {
  const before = [...old.childNodes];
  const wanted = [...next.childNodes];
  const found = partners(before, wanted);
  if (before.some(keyOf)) {
    tellFresh(old, held.row ? found.filter((own) => !own).length : 0);
    if (held.row) {
      found.forEach((own, at) => own && update(own, wanted[at]));
      return;
    }
  }
  // What goes leaves first: a node that need not be moved keeps its press and its focus.
  const stay = new Set(found);
  for (const each of before) if (!stay.has(each)) each.remove();
  let place = old.firstChild;
  found.forEach((own, at) => {
    if (own && own === place) place = own.nextSibling;
    else old.insertBefore(own ?? wanted[at], place);
    if (own) update(own, wanted[at]);
  });
}

/** The nodes that can become those that are wanted: one with a key by its key, any other one by its order.
 * @param {ChildNode[]} before @param {ChildNode[]} wanted @returns {(ChildNode | null)[]} */
function partners(before, wanted) {
  const kept = new Map(before.map((each) => [keyOf(each), each]));
  const free = before.filter((each) => !keyOf(each));
  let from = 0;
  return wanted.map((child, at) => {
    const key = keyOf(child);
    if (key) {
      const own = kept.get(key);
      kept.delete(key);
      return own && alike(own, child) ? own : null;
    }
    for (let to = from; to < free.length; to += 1) {
      if (alike(free[to], child)) {
        from = to + 1;
        return free[to];
      }
      // A later one needs this node, so `child` is one more.
      if (wanted.slice(at + 1).some((later) => alike(free[to], later))) break;
    }
    return null;
  });
}

/** @param {Node} each */
const keyOf = (each) => (each instanceof Element ? each.getAttribute("data-key") : null);

/** Rows that have come while the others are held are counted over their table. @param {Element} body @param {number} count */
function tellFresh(body, count) {
  const news = /** @type {HTMLElement | null | undefined} */ (body.nodeName === "TBODY" ? body.closest(".wide")?.querySelector(".news") : null);
  const text = count ? `+${count} new` : "";
  if (!news || news.textContent === text) return;
  news.textContent = text;
  news.hidden = !count;
}

/** @param {Node} one @param {Node} other */
function alike(one, other) {
  if (one.nodeType !== other.nodeType || one.nodeName !== other.nodeName) return false;
  if (!(one instanceof Element && other instanceof Element)) return true;
  if (stays(one)) return stays(one) === stays(other);
  return one.getAttribute("data-key") === other.getAttribute("data-key")
    && !one.hasAttribute("data-own") && !other.hasAttribute("data-own")
    && !["INPUT", "SELECT", "TEXTAREA", "FORM"].includes(one.nodeName)
    && (one.nodeName !== "BUTTON" || purpose(one) === purpose(other));
}

/** A button that says something else is another one. One whose number changes has a `data-verb` and stays under the finger: a browser sends no
 * click to a button that is replaced while it is pressed. A label names what the verb is done to. @param {Element} button */
const purpose = (button) => button.getAttribute("aria-label") ?? button.getAttribute("data-verb") ?? button.textContent;

/** What the script has set itself and a new drawing does not know. */
const OWN = ["open", "data-clipped"];

/** What has this attribute stays as it is for as long as its value: a button with its focus, a box with its tick.
 * @param {Element} each */
const stays = (each) => each.getAttribute("data-stay");

/** @param {Node} each */
const isText = (each) => each.firstChild?.nodeType === Node.TEXT_NODE && !each.firstChild.nextSibling;

/** @param {any} own @param {any} next */
function update(own, next) {
  if (own.nodeType === Node.TEXT_NODE) {
    if (own.data !== next.data) own.data = next.data;
    return;
  }
  for (const name of listeners.get(next) ?? []) own[name] = next[name];
  if (stays(own) || own.hasAttribute("data-own")) return;
  // The title of an age is the time itself, which is set when somebody points at it.
  if (own.dateTime !== next.dateTime) own.removeAttribute("title");
  for (const { name, value } of next.attributes) {
    if (own.getAttribute(name) !== value) own.setAttribute(name, value);
  }
  if (own.attributes.length !== next.attributes.length) {
    for (const { name } of [...own.attributes]) {
      if (!next.hasAttribute(name) && !OWN.includes(name) && !(name === "title" && next.dateTime)) own.removeAttribute(name);
    }
  }
  if (isSelected(own)) return;
  // Most elements have one text and no more.
  if (isText(own) && isText(next)) update(own.firstChild, next.firstChild);
  else settle(own, next);
}

/** Where the selected text begins. The browser lays the whole page out to say whether a text is selected, so it is asked only after a change. */
let selected = /** @type {Node | null} */ (null);
document.addEventListener("selectionchange", () => {
  const selection = document.getSelection();
  selected = selection && !selection.isCollapsed ? selection.anchorNode : null;
  held.selected = selected?.parentElement?.closest("main :is(tr, li)[data-key]") ?? null;
});

/** Who selects a text, reads or copies it: its cell stays as it is. @param {Element} cell */
const isSelected = (cell) => selected !== null && ["TD", "TH", "DD", "SPAN"].includes(cell.nodeName) && cell.contains(selected);

/** With a comma between thousands: `Intl` would cost a slow machine more than the whole page.
 * @param {number | undefined} n */
export const number = (n) => String(n ?? 0).replace(/\B(?=(\d{3})+$)/g, ",");

/** With one digit at most behind the point. @param {number} n */
function decimal(n) {
  const [before, behind] = n.toFixed(1).split(".");
  return behind === "0" ? number(Number(before)) : `${number(Number(before))}.${behind}`;
}

/** @param {number | undefined} n */
export const rate = (n) => (n ? n < 100 ? decimal(n) : number(Math.round(n)) : "0");

/** @param {number} ms */
export function span(ms) {
  const s = Math.max(Math.round(ms / 1000), 0);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** A length of time in one unit, for a column: `2 ms`, `9.4 s`, `31 m`, `12 h`. @param {number} ms */
export function brief(ms) {
  const s = Math.max(ms, 0) / 1000;
  if (s < 1) return `${Math.round(s * 1000)} ms`;
  if (s < 9.95) return `${decimal(s)} s`;
  if (s < 99.5) return `${Math.round(s)} s`;
  if (s < 5970) return `${Math.round(s / 60)} m`;
  return s < 172_800 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86_400)} d`;
}

/** A length of time in two units, where there is room: `31 m 04 s`. @param {number} ms */
export function long(ms) {
  const s = Math.round(ms / 1000);
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  if (s < 60) return brief(ms);
  if (s < 3600) return `${Math.floor(s / 60)} m ${two(s % 60)} s`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${two(Math.floor((s % 3600) / 60))} m`;
  return `${Math.floor(s / 86_400)} d ${two(Math.floor((s % 86_400) / 3600))} h`;
}

/** How long ago something was, at `now` by the server's clock. Its title has the time itself.
 * @param {number | undefined} at @param {number} now */
export const ago = (at, now) => (at === undefined ? "–" : el("time", { datetime: new Date(at).toISOString(), "data-age": "" },
  now - at < 1000 ? `${decimal(Math.max(now - at, 0) / 1000)} s` : brief(now - at)));

/** Controls, and what turns the direction of a text or has no width. */
// eslint-disable-next-line no-control-regex
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** A text in which nothing is hidden: a character that turns the direction stands as its escape, such as U+202E as `\\u202e`. @param {string} text */
export const plain = (text) => text.replace(UNSEEN, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** @param {number} n */
export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  for (; n >= 1024 && at < 4; at += 1) n /= 1024;
  return `${decimal(n)} ${units[at]}`;
}

/** The zone of all times on the page: the viewer's, or UTC. */
export const zone = {
  /** Whether the browser was asked for its zone, which takes long. */
  known: false,
  get name() {
    return localStorage.getItem("zone") ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
  },
  turn() {
    if (localStorage.getItem("zone")) localStorage.removeItem("zone");
    else localStorage.setItem("zone", "UTC");
    for (const each of /** @type {NodeListOf<HTMLTimeElement>} */ (document.querySelectorAll("time:not([data-age])"))) each.textContent = local(Date.parse(each.dateTime));
  },
};

const formats = /** @type {Map<string, Intl.DateTimeFormat>} */ (new Map());

/** The name of the zone is a part: in one night of the year, an hour comes twice. @param {number} ms */
export function local(ms, timeZone = zone.name) {
  const format = formats.get(timeZone) ?? new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric",
    hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short", timeZone });
  formats.set(timeZone, format);
  return format.format(ms);
}

/** The time of the day. @param {number} ms */
export const clock = (ms) => local(ms).split(/, | /)[3];

/** The day. @param {number} ms */
export const day = (ms) => local(ms).split(" ").slice(0, 2).join(" ");

/** The time in the zone of the page, or in another one, with UTC as its title.
 * @param {number | undefined} ms @param {string} [other] */
export function time(ms, other) {
  if (!ms) return "–";
  const at = new Date(ms).toISOString();
  return other ? el("span", { title: at }, local(ms, other)) : el("time", { datetime: at, title: at }, local(ms));
}

/** A text of the server, with its times in the zone of the page. @param {string} text */
export const told = (text) => text.split(/(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)/)
  .map((part, at) => (at % 2 ? time(Date.parse(part)) : part));

/** A link within the page. @param {string} place @param {Child} text */
export const link = (place, text) => el("a", { href: `#/${place}` }, text);

/** Copy a text, also over plain http, where browsers have no clipboard. @param {string} text */
export async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const box = /** @type {HTMLTextAreaElement} */ (el("textarea", { class: "spoken" }));
  box.value = text;
  (document.querySelector("dialog[open]") ?? document.body).append(box);
  box.select();
  const done = document.execCommand("copy");
  box.remove();
  if (!done) throw new Error("Nothing is copied.");
}
