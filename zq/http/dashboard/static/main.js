// The start of the page: its places, the head, the keys, signing in.

import { help, rights } from "./actions.js";
import { clock, el, held, number, show, span, zone } from "./dom.js";
import { Live, Refusal, ask, beginsWithOverview, first, keepToken } from "./net.js";

/** @typedef {{view: Record<string, any>, draw: (doc: any, at: number) => void}} Page */

/** @type {Record<string, [string | null, string, string]>} Name in the list, key, file. */
const PAGES = {
  overview: ["Overview", "o", "queues"], queues: ["Queues", "q", "queues"], queue: [null, "", "queue"],
  jobs: ["Jobs", "j", "jobs"], job: [null, "", "job"], failures: ["Failures", "f", "server"],
  schedules: ["Schedules", "s", "schedules"], workers: ["Workers", "w", "server"],
  budgets: ["Budgets", "b", "server"], sweeps: ["Sweeps", "e", "sweeps"], health: ["Health", "h", "server"], audit: ["Audit", "a", "audit"],
};
const byId = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const main = byId("main");
const SPOKEN_MS = 10_000;
/** Of environments. Any other one is grey: its word tells what it is. */
const COLOURS = /** @type {Record<string, string>} */ ({ production: "red", staging: "yellow" });

let page = /** @type {Page | null} */ (null);
let state = "connecting";
let spokenAt = 0;
let spoken = "";
let failed = "";
let seenAt = 0;
let where = "";

const live = new Live((doc, at) => {
  pulse(doc.pulse);
  seenAt = at;
  age();
  if (document.getSelection()?.isCollapsed === false && main.contains(document.getSelection()?.anchorNode ?? null)) return;
  if (!page) return;
  page.draw(doc, at);
  main.removeAttribute("aria-busy");
  if (byId("zone").textContent === "Zone") requestAnimationFrame(() => setTimeout(nameZone));
}, (next) => {
  state = next;
  head();
});

const go = (/** @type {string} */ place) => {
  location.hash = `#/${place}`;
};

let opened = 0;

async function open() {
  const mine = ++opened;
  const [wanted, values] = (location.hash.slice(2) || "overview").split("?");
  const name = Object.hasOwn(PAGES, wanted) ? wanted : "overview";
  const [title, , file] = PAGES[name];
  main.replaceChildren();
  held.row = null;
  main.setAttribute("aria-busy", "true");
  page = null;
  let made;
  try {
    made = await import(`./${file}.js`);
  } catch {
    if (mine === opened) main.replaceChildren(el("p", { role: "alert" }, "This part cannot be loaded: load the page again."));
    return;
  }
  if (mine !== opened) return;
  page = made[name](main, new URLSearchParams(values), go);
  named(main.querySelector("h1")?.textContent ?? title ?? "");
  for (const link of byId("pages").querySelectorAll("a")) {
    if (link.getAttribute("href") === `#/${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  live.watch(/** @type {Page} */ (page).view);
}

/** @param {any} now What every topic carries. */
function pulse(now) {
  const counts = { failures: now.totals.dead, workers: now.workers };
  for (const link of byId("pages").querySelectorAll("a")) {
    const name = /** @type {keyof typeof counts} */ (link.getAttribute("data-page"));
    const n = counts[name];
    const text = PAGES[name][0] + (n ? ` ${number(n)}` : "");
    if (link.textContent !== text) link.textContent = text;
  }
  const say = now.findings ? `${number(now.findings)} findings, the worst: ${["", "a note", "a warning", "an alarm"][now.worst]}`
    : "Nothing is wrong";
  if (say !== spoken && Date.now() - spokenAt >= SPOKEN_MS) {
    byId("spoken").textContent = spoken = say;
    spokenAt = Date.now();
  }
}

const STATES = /** @type {Record<string, string>} */ ({
  live: "live", lost: "stale: the server cannot be reached, the last values stay", hidden: "hidden",
  stale: "stale: nothing was heard for 5 seconds, the last values stay", paused: "updates are paused",
  polled: "stale: no events come, the numbers are asked for every 5 seconds", connecting: "connecting…",
});

function head() {
  const skew = Math.abs(live.ahead);
  const word = STATES[state] ?? state;
  const text = state === "live" && skew > 30_000 ? `live, the clocks differ by ${span(skew)}` : word;
  const place = byId("live");
  if (place.textContent !== text) place.textContent = text;
  place.className = ["lost", "stale", "polled"].includes(state) ? "stale" : state.split(" ")[0];
}

/** Of when the numbers are, and whether rows are held. */
function age() {
  if (!zone.known) return;
  const text = `${seenAt ? `numbers of ${clock(seenAt)}` : ""}${held.row?.isConnected ? ", rows held under the pointer" : ""}`;
  if (byId("age").textContent !== text) byId("age").textContent = text;
}

/** @param {Element | null} row */
function hold(row) {
  const freed = held.row && !row;
  held.row = row;
  if (freed) live.again();
  age();
}
main.addEventListener("pointerover", (event) => hold(event.pointerType === "mouse"
  ? /** @type {Element} */ (event.target).closest("main [data-key]") : null));
main.addEventListener("pointerleave", () => hold(null));

function signIn() {
  const said = el("p", { role: "alert" }, failed);
  main.replaceChildren(el("h1", {}, "Sign in"), el("form", { onsubmit: async (/** @type {any} */ event) => {
    event.preventDefault();
    try {
      const reply = await ask("session", { method: "POST", body: JSON.stringify({ key: event.target.key.value }),
        headers: { "Content-Type": "application/json" } });
      keepToken((await reply.json()).token);
      start();
    } catch (error) {
      said.textContent = error instanceof Refusal ? error.message : String(error);
    }
  } }, el("label", {}, "Access key ", el("input", { name: "key", type: "password", required: true,
    autocomplete: "current-password" })), el("p", { class: "buttons" }, el("button", {}, "Sign in")), said));
  main.removeAttribute("aria-busy");
  byId("live").textContent = "not signed in";
  nameZone();
  named("Sign in");
}

async function start() {
  let who;
  const asked = first.who ?? ask("session");
  first.who = null;
  try {
    who = await (await asked).json();
  } catch (error) {
    byId("live").textContent = `stale: ${/** @type {Error} */ (error).message}`;
    setTimeout(start, 1000);
    return;
  }
  rights.scopes = who.scopes;
  rights.masked = who.masked;
  rights.name = who.name ?? "";
  rights.url = who.url ?? "";
  rights.queues = who.queues;
  byId("version").textContent = who.zq;
  introduce(who);
  byId("read-only").textContent = who.read_only ? "read-only" : "";
  byId("sign-out").hidden = !who.name;
  if (!who.scopes.includes("read")) {
    failed = who.name ? `the key ${who.name} does not have the scope read, which this page needs` : "";
    signIn();
    return;
  }
  open();
}

/** Which of several servers this is: nobody should take one for another. @param {any} who */
function introduce({ server, environment }) {
  where = [environment, server].filter(Boolean).map((each) => `${each} · `).join("");
  byId("server").textContent = server ?? "";
  const badge = byId("environment");
  badge.textContent = environment ?? "";
  badge.hidden = !environment;
  badge.className = `badge ${COLOURS[environment?.toLowerCase()] ?? "grey"}`;
}

/** The title of the tab. @param {string} title */
function named(title) {
  document.title = `${title} · ${where}zq`;
}

start();
if (beginsWithOverview) live.watch({ topic: "overview" });

// The head

show(byId("pages"), Object.entries(PAGES).filter(([, [title]]) => title).map(([name, [title]]) =>
  el("li", {}, el("a", { href: `#/${name}`, "data-page": name }, title))));
byId("updates").addEventListener("click", togglePause);
byId("theme").addEventListener("click", turnTheme);
byId("zone").addEventListener("click", turnZone);
byId("help").addEventListener("click", showHelp);
byId("sign-out").addEventListener("click", async () => {
  await ask("session", { method: "DELETE" });
  location.reload();
});
addEventListener("hashchange", async () => {
  if (!rights.scopes.includes("read")) return;
  main.focus({ preventScroll: true });
  await open();
  if (finding) document.getElementById("filter")?.focus();
  finding = false;
});

function togglePause() {
  live.pause(!live.paused);
  byId("updates").setAttribute("aria-pressed", String(live.paused));
}

const THEMES = ["", "light", "dark"];

/** @param {string | null} theme */
function setTheme(theme) {
  if (theme) document.documentElement.setAttribute("data-theme", theme);
  else document.documentElement.removeAttribute("data-theme");
}

function turnTheme() {
  const now = document.documentElement.getAttribute("data-theme") ?? "";
  const next = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length];
  setTheme(next);
  localStorage.setItem("theme", next);
}
setTheme(localStorage.getItem("theme"));

function turnZone() {
  zone.turn();
  nameZone();
}

/** A browser takes long to tell the zone: nobody waits for that to see the first numbers. */
function nameZone() {
  zone.known = true;
  byId("zone").textContent = `Zone: ${zone.name}`;
  age();
}

// Keys

let leader = false;
let finding = false;

function showHelp() {
  help(localStorage.getItem("keys") !== "off", (on) => localStorage.setItem("keys", on ? "on" : "off"),
    live.every, (every) => {
      live.every = every;
      localStorage.setItem("every", String(every));
    });
}
live.every = Number(localStorage.getItem("every")) || 1;

/** @param {number} step */
function moveRow(step) {
  const rows = /** @type {HTMLElement[]} */ ([...main.querySelectorAll("tbody a, .findings a")]
    .filter((each, at, all) => all.findIndex((other) => other.closest("tr, li") === each.closest("tr, li")) === at));
  const at = rows.findIndex((row) => row === document.activeElement);
  rows[Math.min(Math.max(at + step, 0), rows.length - 1)]?.focus();
}

const selectRow = () => /** @type {HTMLElement | null} */ (
  document.activeElement?.closest("tr")?.querySelector("input[type=checkbox]"))?.click();

/** The selected jobs come after the buttons for all that match, and before them in what is meant. */
function requeue() {
  const row = document.activeElement?.closest("main .findings li");
  [...(row ?? main).querySelectorAll("button")].filter((each) => /^Requeue/.test(each.textContent ?? "")).at(-1)?.click();
}

document.addEventListener("keydown", (event) => {
  const target = /** @type {Element} */ (event.target);
  if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, textarea, select, dialog")) return;
  if (localStorage.getItem("keys") === "off" && event.key !== "?") return;
  const led = leader;
  leader = false;
  if (led) {
    const found = Object.entries(PAGES).find(([, [title, key]]) => title && key === event.key);
    if (found) go(found[0]);
    return;
  }
  if (event.key === "g") leader = true;
  else if (event.key === "?") showHelp();
  else if (event.key === "p") togglePause();
  else if (event.key === "t") turnTheme();
  else if (event.key === "z") turnZone();
  else if (event.key === "r") requeue();
  else if (event.key === "x") selectRow();
  else if (event.key === "j") moveRow(1);
  else if (event.key === "k") moveRow(-1);
  else if (event.key === "/") {
    event.preventDefault();
    const box = document.getElementById("filter");
    if (box) box.focus();
    else {
      finding = true;
      go("jobs");
    }
  }
});
