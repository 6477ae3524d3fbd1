// The start of the page: its places, the head, the keys.

import { rights } from "./rights.js";
import { clock, el, held, local, number, plain, show, span, zone } from "./dom.js";
import { Live, Refusal, address, ahead, ask, beginsWithOverview, first, get, lost } from "./net.js";
import { banner, button, empty, queuePlace, toast } from "./parts.js";

/** A page: what it watches, and how it is drawn with each frame. `keys` are its own, by the key. `leave` is called when another page opens;
 * before that, `turn` is asked to follow an address that has only other values, and answers with true if it does.
 * @typedef {{view: Record<string, any>, draw: (doc: any, at: number, all?: boolean) => void, keys?: Record<string, () => void>, leave?: () => void,
 *   turn?: (values: URLSearchParams) => boolean}} Page */

/** Each page: its word in the head, its key after `g`, its file, and what its address must tell besides.
 * The file exports a function with the name of the page: `queues(main, values, go)`.
 * @type {Record<string, [string | null, string, string, string?]>} */
const PAGES = {
  overview: ["Overview", "o", "overview"], queues: ["Queues", "q", "queues"], queue: [null, "", "queue", "name"],
  jobs: ["Jobs", "j", "jobs"], job: [null, "", "job"], failures: ["Failures", "f", "failures"],
  schedules: ["Schedules", "s", "schedules"], workers: ["Workers", "w", "workers"], devices: ["Devices", "d", "devices"], activity: ["Activity", "a", "activity"],
  health: [null, "h", "server"],
};
const byId = (/** @type {string} */ id) => /** @type {any} */ (document.getElementById(id));
const main = /** @type {HTMLElement} */ (byId("main"));
const SPOKEN_MS = 10_000;
const FRESH_MS = 1000;
const SKEW_MS = 30_000;

let page = /** @type {Page | null} */ (null);
let state = "connecting";
let spokenAt = 0;
let spoken = "";
let where = "";
/** What the server runs, as it was when the page was loaded. */
let zq = "";
let restarted = false;

const live = new Live((doc) => {
  pulse(doc.pulse);
  head();
  draw();
}, (next) => {
  state = next;
  head();
  if (next.startsWith("refused")) lost.session();
});

/** Show once more what came last. The first drawing has the figures alone, and all else follows when they are seen. */
function draw() {
  if (!page || !live.now) return;
  const [doc, at] = live.now;
  page.draw(doc, at, zone.known);
  requestAnimationFrame(clip);
  if (zone.known) {
    if (!doc.partial) main.removeAttribute("aria-busy");
    return;
  }
  requestAnimationFrame(() => setTimeout(() => {
    zone.known = true;
    head();
    draw();
  }));
}

/** A table that is wider than its box can be moved sideways, and its last column stays. */
function clip() {
  const clipped = [...main.querySelectorAll(".wide")].map((wide) => /** @type {[Element, boolean]} */ ([wide, wide.scrollWidth > wide.clientWidth + 1]));
  for (const [wide, is] of clipped) wide.toggleAttribute("data-clipped", is);
}
addEventListener("resize", clip);

/** What nobody waits for is told: somebody has pressed something, and it cannot be done. The form to sign in says itself why it is shown. */
addEventListener("unhandledrejection", (event) => {
  const { reason } = event;
  if (reason instanceof Refusal) event.preventDefault();
  if (reason?.status !== 401) toast(reason instanceof Refusal ? reason.message : String(reason), { failed: true });
});

const go = (/** @type {string} */ place) => {
  location.hash = `#/${place}`;
};

let opened = 0;
let shown = "";

/** Show the page of the address. */
async function open() {
  // What was opened for another address would act for that one.
  for (const each of document.querySelectorAll("dialog[open]")) /** @type {HTMLDialogElement} */ (each).close();
  for (const each of document.querySelectorAll(":popover-open")) /** @type {HTMLElement} */ (each).hidePopover();
  const [wanted, given] = address();
  // With `aria-busy` this says to programs which address is shown, and when it is complete.
  main.dataset.place = location.hash;
  if (page && shown === wanted && page.turn?.(given)) return;
  const mine = ++opened;
  shown = wanted;
  page?.leave?.();
  page = null;
  held.pointed = held.focused = null;
  main.replaceChildren();
  main.className = "";
  main.setAttribute("aria-busy", "true");
  mark(wanted);
  const refusal = misses(wanted, given);
  if (refusal) {
    page = { view: { topic: "pulse" }, draw: () => undefined };
    main.append(el("h1", { class: "spoken" }, "No such page"), el("section", { class: "card" }, refusal));
  } else {
    let made;
    try {
      made = await import(`./${PAGES[wanted][2]}.js`);
    } catch {
      if (mine === opened) main.replaceChildren(banner("This part cannot be loaded.", "The server is silent, or runs another version now.",
        { failed: true, button: button("Load the page again", () => location.reload(), { class: "small" }) }));
      return;
    }
    if (mine !== opened) return;
    page = /** @type {Page} */ (made[wanted](main, given, go));
  }
  named(main.querySelector("h1")?.textContent ?? PAGES[wanted]?.[0] ?? "");
  live.watch(/** @type {Page} */ (page).view);
}

/** What to say of an address that leads nowhere. @param {string} wanted @param {URLSearchParams} values */
function misses(wanted, values) {
  if (!Object.hasOwn(PAGES, wanted)) {
    return empty("There is no such page", `“${plain(wanted)}” is none of the pages of zq. `, el("a", { href: "#/overview" }, "To the overview"));
  }
  const [, , , need] = PAGES[wanted];
  return need && !values.get(need) && empty(`This address names no ${wanted}`, `It lacks ${need}=…, which says what is shown. `,
    el("a", { href: `#/${wanted}s` }, `All ${wanted}s`));
}

/** Which page it is stands in the head. @param {string} wanted */
function mark(wanted) {
  const part = { queue: "queues", job: "jobs" }[wanted] ?? wanted;
  for (const link of byId("pages").querySelectorAll("a")) {
    if (link.dataset.page === part) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

// The head

/** The number beside the word of a page: what it counts, and how bad that is. @param {any} now */
const counted = (now) => /** @type {Record<string, [number | undefined, string, string]>} */ ({
  queues: [now.queues, now.queues === 1 ? "queue" : "queues", ""], workers: [now.workers, now.workers === 1 ? "stream" : "streams", ""],
  failures: [now.causes, now.causes === 1 ? "cause in the last hour" : "causes in the last hour", "hot"] });

/** @param {any} now What every topic carries. */
function pulse(now) {
  const counts = counted(now);
  show(byId("pages"), Object.entries(PAGES).filter(([, [title]]) => title).map(([name, [title]]) => {
    const [n, words, look] = counts[name] ?? [];
    return el("li", { "data-key": name }, el("a", { href: `#/${name}`, "data-page": name, "aria-current": currentOf(name) }, title,
      n ? [" ", el("span", { class: `count ${look}`.trim() }, number(n), el("span", { class: "spoken" }, ` ${words}`))] : null));
  }));
  if (zq && now.zq && now.zq !== zq) restarted = true;
  const say = now.findings === undefined ? spoken : now.findings ? `${number(now.findings)} findings, the worst: ${["", "a note", "a warning", "an alarm"][now.worst]}`
    : "Nothing is wrong";
  if (say !== spoken && Date.now() - spokenAt >= SPOKEN_MS) {
    byId("spoken").textContent = spoken = say;
    spokenAt = Date.now();
  }
}

const currentOf = (/** @type {string} */ name) => byId("pages").querySelector(`[data-page=${name}]`)?.getAttribute("aria-current");

const WORDS = /** @type {Record<string, string>} */ ({
  live: "live", lost: "stale: the server cannot be reached", hidden: "hidden", stale: "stale: nothing was heard for 5 seconds",
  paused: "updates are paused", polled: "no events come, the numbers are asked for every 5 seconds", connecting: "connecting…",
});

/** How old the drawn numbers are, and what is wrong with them. */
function head() {
  const stale = ["lost", "stale"].includes(state);
  const refused = state.startsWith("refused");
  const old = live.old();
  const skew = Math.abs(ahead);
  tell(byId("live"), WORDS[state] ?? (refused ? "not signed in" : state));
  byId("live").dataset.state = state.split(" ")[0];
  byId("dot").className = state === "live" || state === "polled" ? "dot" : "dot off";
  tell(byId("age"), old === undefined ? "" : `${state === "paused" ? "paused, " : ""}${old < FRESH_MS ? "< 1 s" : span(old)} old`);
  byId("age").title = live.last && zone.known ? `Numbers of ${clock(live.now?.[1] ?? 0)}` : "";
  document.body.classList.toggle("stale", stale && old !== undefined);
  const banners = [
    restarted && banner("The server has another version now.", "Load the page again, so that both fit.",
      { button: button("Load again", () => location.reload(), { class: "small" }) }),
    stale && banner(old === undefined ? "The server does not answer." : `No answer for ${span(live.silence())}.`,
      live.last && zone.known ? `These are the numbers of ${clock(live.now?.[1] ?? 0)}. The page asks again every 5 s.` : "The page asks again every 5 s.",
      { key: "silent", failed: true, button: button("Ask now", () => live.reopen(), { class: "small" }) }),
    !stale && !refused && skew > SKEW_MS && banner(`Clocks differ by ${span(skew)}.`, "Ages go by the server’s clock.", { key: "clocks" }),
    readOnly && banner("Read-only.", "The server was started so that this page changes nothing."),
  ].filter(Boolean).slice(0, 2);
  // One that comes or goes would push the row away from the pointer. Old numbers are grey meanwhile.
  if (!held.pointed?.isConnected || banners.length === byId("banners").childElementCount) show(byId("banners"), banners);
}
let readOnly = false;
setInterval(head, 1000);

/** @param {Element} place @param {string} text */
function tell(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

/** The row under the pointer. @param {Element | null} row */
function point(row) {
  const freed = held.pointed && !row;
  held.pointed = row;
  if (freed) draw();
}
const rowOf = (/** @type {any} */ event) => event.target.closest("main tr[data-key], main li[data-key]");
main.addEventListener("pointerover", (event) => {
  const time = /** @type {Element} */ (event.target).closest("time[data-age]:not([title])");
  time?.setAttribute("title", local(Date.parse(/** @type {HTMLTimeElement} */ (time).dateTime)));
  point(event.pointerType === "mouse" ? rowOf(event) : null);
});
main.addEventListener("pointerleave", () => point(null));
main.addEventListener("focusin", (event) => {
  held.focused = rowOf(event);
});
main.addEventListener("focusout", (event) => {
  if (!held.focused || held.focused.contains(/** @type {Node | null} */ (event.relatedTarget))) return;
  held.focused = null;
  // The element with focus may go while its place is being drawn.
  queueMicrotask(draw);
});
document.addEventListener("released", draw);

/** A row is a target as its name is. */
main.addEventListener("click", (event) => {
  const target = /** @type {Element} */ (event.target);
  if (target.closest("a, button, input, label, select, summary, [popover]") || !document.getSelection()?.isCollapsed) return;
  const link = /** @type {HTMLElement | null | undefined} */ (target.closest("tbody tr")?.querySelector("th[scope=row] a"));
  link?.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, ctrlKey: event.ctrlKey, metaKey: event.metaKey, shiftKey: event.shiftKey }));
});

/** Find what was typed: a queue by its name, which may look like anything, a job by its id, or else jobs by their words. @param {string} text */
async function find(text) {
  const id = /(?:^|…)([0-9a-z]{25,26})$/i.exec(text);
  if (await isQueue(text)) go(queuePlace(text));
  else if (id) go(`job?id=${encodeURIComponent(id[1])}`);
  else go(`jobs?f=${encodeURIComponent(text)}`);
}

/** @param {string} text */
async function isQueue(text) {
  try {
    return (await get(`queues/${encodeURIComponent(text)}/near`)).known;
  } catch {
    return false;
  }
}

byId("find").addEventListener("submit", (/** @type {any} */ event) => {
  event.preventDefault();
  const box = event.target.find;
  const text = box.value.trim();
  if (!text) return;
  box.value = "";
  box.blur();
  find(text);
});
let asks = 0;
byId("find").addEventListener("input", async (/** @type {any} */ event) => {
  const mine = ++asks;
  const q = encodeURIComponent(event.target.value);
  const found = await Promise.all(["queue", "type"].map((field) => get(`suggest?field=${field}&q=${q}`).catch(() => ({ values: [] }))));
  if (mine === asks) show(byId("found"), found.flatMap(({ values }, at) => values.map((/** @type {any} */ { text }) =>
    el("option", { value: at ? `type:${text}` : text }))));
});

// Who looks

/** A session that has ended shows the form to sign in, and leads back to the same address. @param {string} [why] */
async function signIn(why) {
  signing = true;
  // What was asked for without the session would be refused when there is one.
  live.stop();
  opened += 1;
  page?.leave?.();
  page = null;
  document.querySelector("dialog[open]")?.remove();
  main.removeAttribute("aria-busy");
  delete main.dataset.place;
  const { signIn: form } = await import("./signin.js");
  document.body.classList.add("out");
  form(main, why ?? "", start);
  state = "refused";
  head();
  named("Sign in");
}
let signedIn = false;
/** Whether the form to sign in is shown, or comes. */
let signing = false;
lost.session = () => {
  if (!signedIn) return;
  signedIn = false;
  signIn("Your session has ended. Sign in, and you are back where you were.");
};

async function start() {
  let who;
  const asked = first.who ?? ask("session");
  first.who = null;
  try {
    who = await (await asked).json();
  } catch {
    state = "lost";
    head();
    setTimeout(start, 1000);
    return;
  }
  rights.scopes = who.scopes;
  rights.masked = who.masked;
  rights.name = who.name ?? "";
  rights.url = who.url ?? "";
  rights.queues = who.queues;
  readOnly = Boolean(who.read_only);
  zq = who.zq;
  introduce(who);
  if (who.scopes.includes("read")) {
    signedIn = Boolean(who.name);
    signing = false;
    document.body.classList.remove("out");
    state = "connecting";
    open();
  } else signIn(who.name ? `The key ${who.name} does not have the scope read, which this page needs.` : "");
}

/** Which of several servers this is: nobody should take one for another. @param {any} who */
function introduce({ server, environment }) {
  where = [environment, server].filter(Boolean).map((each) => `${each} · `).join("");
  byId("server").textContent = plain(server ?? "");
  byId("server").title = `${server}: health, disk, settings, backup`;
  byId("environment").textContent = environment ?? "";
  byId("environment").hidden = !environment;
  document.body.dataset.env = environment?.toLowerCase() ?? "";
}

/** The title of the tab. @param {string} title */
function named(title) {
  document.title = `${title} · ${where}zq`;
}

pulse({});
start();
if (beginsWithOverview) live.watch({ topic: "overview" });

byId("updates").addEventListener("click", togglePause);
byId("settings").addEventListener("click", showSettings);
addEventListener("hashchange", () => {
  if (!rights.scopes.includes("read") || signing) return;
  main.focus({ preventScroll: true });
  open();
});

function togglePause() {
  live.pause(!live.paused);
  byId("updates").setAttribute("aria-pressed", String(live.paused));
  byId("updates").title = live.paused ? "Go on (p)" : "Pause updates (p)";
}

const THEMES = ["", "light", "dark"];

/** @param {string | null} theme */
function setTheme(theme) {
  if (theme) document.documentElement.setAttribute("data-theme", theme);
  else document.documentElement.removeAttribute("data-theme");
  localStorage.setItem("theme", theme ?? "");
}
setTheme(localStorage.getItem("theme"));
const theme = () => document.documentElement.getAttribute("data-theme") ?? "";

function turnZone() {
  zone.turn();
  head();
  draw();
}

live.every = Number(localStorage.getItem("every")) || 1;

async function showSettings() {
  const { settings } = await import("./settings.js");
  settings({ live, setTheme, theme: theme(), turnZone, pages: PAGES });
}

// Keys

let leader = false;

/** The table that was used last, or the first one. */
let used = /** @type {Element | null} */ (null);
main.addEventListener("focusin", (event) => {
  used = /** @type {Element} */ (event.target).closest(".wide, .findings") ?? used;
});

/** @param {number} step */
function moveRow(step) {
  const place = used?.isConnected ? used : main.querySelector(".findings, .wide");
  const rows = [...place?.querySelectorAll(":scope > li, tbody tr") ?? []].map((row) =>
    /** @type {HTMLElement | null} */ (row.querySelector("th[scope=row] a") ?? row.querySelector("a, button"))).filter((each) => each !== null);
  const at = rows.findIndex((each) => each.closest("tr, li")?.contains(document.activeElement));
  rows[Math.min(Math.max(at + step, 0), rows.length - 1)]?.focus();
}

/** Press what does this: of the selection, of the row with focus, of what is open, or of the job that the page is about. A key means no other
 * job than one that somebody has chosen. @param {string} what */
function press(what) {
  const row = document.activeElement?.closest("main :is(tr, li)");
  const places = [main.querySelector(".selection"), row, main.querySelector(".panel"), row ? null : main.querySelector(":scope > .job")];
  for (const place of places) {
    const found = /** @type {HTMLElement | null | undefined} */ (place?.querySelector(`[data-verb="${what}"]:not(:disabled)`));
    if (found) return found.click();
  }
}

/** Esc closes what is open, and then clears what is ticked. */
function close() {
  const found = [".panel [data-verb=close]", ".selection [data-verb=clear]"].map((each) => main.querySelector(each)).find(Boolean);
  /** @type {HTMLElement | undefined} */ (found)?.click();
}

/** Tick the row with focus, or all up to it. @param {boolean} shiftKey */
function tick(shiftKey) {
  const box = document.activeElement?.closest("tr")?.querySelector(".tick input, input[type=checkbox]");
  box?.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, shiftKey }));
}

/** @param {number} step */
function turnRange(step) {
  const buttons = [...main.querySelector(".segment")?.querySelectorAll("button") ?? []];
  const at = buttons.findIndex((each) => each.getAttribute("aria-pressed") === "true");
  buttons[at + step]?.click();
}

/** What each key does. A button does what its `data-verb` says. @type {Record<string, (event: KeyboardEvent) => void>} */
const KEYS = {
  "?": showSettings, p: togglePause, t: () => setTheme(THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length]), z: turnZone,
  "/": () => byId("find").find.focus(), f: () => document.getElementById("filter")?.focus(),
  j: () => moveRow(1), k: () => moveRow(-1), x: () => tick(false), X: () => tick(true), Escape: close,
  r: () => press("requeue"), c: () => press("cancel"), m: () => press("move"), "#": () => press("delete"), y: () => press("copy"),
  "[": () => turnRange(-1), "]": () => turnRange(1),
};

document.addEventListener("keydown", (event) => {
  const target = /** @type {Element} */ (event.target);
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || target.closest("input:not([type=checkbox]), textarea, select, dialog, [popover]")) return;
  if (localStorage.getItem("keys") === "off" && !["?", "Escape"].includes(event.key)) return;
  const led = leader;
  leader = event.key === "g" && !led;
  if (led) {
    const found = Object.entries(PAGES).find(([, [, key]]) => key === event.key);
    if (found) go(found[0]);
    return;
  }
  const act = page?.keys?.[event.key] ?? (Object.hasOwn(KEYS, event.key) ? KEYS[event.key] : null);
  if (!act || leader) return;
  event.preventDefault();
  act(event);
});
