// Elements, words and numbers. Text enters the page as text only.

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {{key: string, cells: (Child | Child[])[]}} Row */

/**
 * Make an element. A name that begins with "on" is a listener.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {any}
 */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
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

/** The row or line under the pointer. While there is one, nothing moves: who clicks, hits what they saw. */
export const held = { row: /** @type {Element | null} */ (null) };

/**
 * Replace what a place shows, unless that is the same. Focus and the row under the pointer stay.
 * @param {Element} place
 * @param {...(Child | Child[])} children
 */
export function show(place, ...children) {
  const next = document.createElement("div");
  fill(next, ...children);
  // Another part of the page must not push the row away.
  if (held.row?.isConnected && !place.contains(held.row) && next.childElementCount !== place.childElementCount) return;
  settle(place, next);
}

/**
 * Make one element look like another, and keep every node that can stay.
 * @param {Element} old
 * @param {Element} next
 */
function settle(old, next) {
  const kept = new Map();
  for (const child of old.children) {
    const key = child.getAttribute("data-key");
    if (key) kept.set(key, child);
  }
  if (held.row?.isConnected && kept.size) {
    for (const child of [...next.children]) {
      const own = kept.get(child.getAttribute("data-key"));
      if (own && alike(own, child)) update(own, child);
    }
    return;
  }
  let place = old.firstChild;
  for (const child of [...next.childNodes]) {
    const key = child instanceof Element ? child.getAttribute("data-key") : null;
    const own = key ? kept.get(key) : place;
    if (own && alike(own, child)) {
      if (own === place) place = place && place.nextSibling;
      else old.insertBefore(own, place);
      update(own, child);
    } else {
      old.insertBefore(child, place);
    }
    if (key) kept.delete(key);
  }
  while (place) {
    const gone = place;
    place = place.nextSibling;
    gone.remove();
  }
}

/** @param {Node} one @param {Node} other */
function alike(one, other) {
  if (one.nodeType !== other.nodeType || one.nodeName !== other.nodeName) return false;
  if (!(one instanceof Element && other instanceof Element)) return true;
  if (stays(one)) return stays(one) === stays(other);
  return one.getAttribute("data-key") === other.getAttribute("data-key")
    && !one.hasAttribute("data-own") && !other.hasAttribute("data-own")
    && !["BUTTON", "INPUT", "SELECT", "TEXTAREA", "FORM"].includes(one.nodeName);
}

/** What has this attribute stays as it is for as long as its value: a button with its focus, a box with its tick.
 * @param {Element} each */
const stays = (each) => each.getAttribute("data-stay");

/** @param {any} own @param {any} next */
function update(own, next) {
  if (own.nodeType === Node.TEXT_NODE) {
    if (own.data !== next.data) own.data = next.data;
    return;
  }
  if (stays(own)) return;
  for (const { name } of [...own.attributes]) {
    if (!next.hasAttribute(name) && name !== "open") own.removeAttribute(name);
  }
  for (const { name, value } of [...next.attributes]) {
    if (own.getAttribute(name) !== value) own.setAttribute(name, value);
  }
  settle(own, next);
}

/** With a comma between thousands: `Intl` would cost a slow machine more than the whole page.
 * @param {number | undefined} n */
export const number = (n) => String(n ?? 0).replace(/\B(?=(\d{3})+$)/g, ",");

/** With one digit at most behind the point. @param {number} n */
function decimal(n) {
  const [before, behind] = n.toFixed(1).split(".");
  return behind === "0" ? number(Number(before)) : `${number(Number(before))}.${behind}`;
}

/** @param {number | undefined} n */
export const rate = (n) => (n ? decimal(n) : "0");

/** @param {number} ms */
export function span(ms) {
  const s = Math.max(Math.round(ms / 1000), 0);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

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
    for (const each of document.querySelectorAll("time")) each.textContent = local(Date.parse(each.dateTime));
  },
};

const formats = /** @type {Map<string, Intl.DateTimeFormat>} */ (new Map());

/** The name of the zone is a part: in one night of the year, an hour comes twice. @param {number} ms */
function local(ms, timeZone = zone.name) {
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

/** How each status looks: colour, and a shape for those who do not see colours.
 * @type {Record<string, string[]>} */
const LOOKS = {
  scheduled: ["grey", "◷"], ready: ["yellow", "○"], pending: ["yellow", "○"],
  in_flight: ["blue", "▶"], running: ["blue", "▶"], dead: ["red", "✕"], expired: ["orange", "△"],
  completed: ["grey", "✓"], cancelled: ["grey", "−"], paused: ["grey", "Ⅱ"],
};

/** A status as a word, a shape and a colour. @param {string} status @param {string} [word] */
export function badge(status, word) {
  const [colour, shape] = LOOKS[status] ?? ["grey", "·"];
  return el("span", { class: `badge ${colour}`, "data-status": status },
    el("span", { "aria-hidden": "true" }, `${shape} `), (word ?? status).replace("_", " "));
}

/**
 * A table with a caption. A row is a list of cells, the first of which names it.
 * @param {string} caption
 * @param {string[]} heads
 * @param {Row[]} rows
 * @param {string} [empty]
 */
export function table(caption, heads, rows, empty = "Nothing here.") {
  const line = (/** @type {Row} */ { key, cells }) => el("tr", { "data-key": key },
    cells.map((cell, at) => el(at ? "td" : "th", at ? {} : { scope: "row" }, cell)));
  return el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": caption },
    el("table", {}, el("caption", {}, caption),
      el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
      el("tbody", {}, rows.map(line))),
    rows.length ? null : el("p", { class: "empty" }, empty));
}

/** Names and values. @param {[string, Child][]} pairs */
export function facts(pairs) {
  return el("dl", { class: "facts" }, pairs.map(([name, value]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

/** A link within the page. @param {string} place @param {Child} text */
export const link = (place, text) => el("a", { href: `#/${place}` }, text);

export const queueLink = (/** @type {string} */ name) =>
  link(`queue?name=${encodeURIComponent(name)}`, name);

export const jobLink = (/** @type {string} */ id) => link(`job?id=${encodeURIComponent(id)}`, id);

/** Copy a text, also over plain http, where browsers have no clipboard. @param {string} text */
export async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const box = /** @type {HTMLTextAreaElement} */ (el("textarea", { class: "spoken" }));
  box.value = text;
  (document.querySelector("dialog[open]") ?? document.body).append(box);
  box.select();
  document.execCommand("copy");
  box.remove();
}

/** @param {string} label @param {() => string} text */
export const copyButton = (label, text) => el("button", {
  type: "button",
  onclick: async (/** @type {Event} */ event) => {
    await copy(text());
    const button = /** @type {Element} */ (event.currentTarget ?? event.target);
    button.textContent = "Copied";
  },
}, label);
