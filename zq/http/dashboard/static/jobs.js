// Jobs: the filter line, the rows that it finds, the selected ones, and saved views.

import { filterActions, rights } from "./actions.js";
import { badge, el, fill, jobLink, link, number, queueLink, show, table, time } from "./dom.js";
import { parseFilter, suggestions } from "./filter.js";
import { get, query } from "./net.js";

const PAGE = 50;
const MOST_NEW = 100;
const CHECK_MS = 1000;
const SEARCH_MS = 1000;
const DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** When a job was stored: its id says so. @param {string} id */
const bornAt = (id) => [...id.slice(0, 10)].reduce((ms, digit) => ms * 32 + DIGITS.indexOf(digit), 0);

/** @param {Element} main @param {URLSearchParams} values @param {(place: string) => void} go */
export function jobs(main, values, go) {
  const line = values.get("f") ?? "";
  const body = el("div");
  const wrong = el("p", { id: "wrong", role: "alert" });
  const words = el("datalist", { id: "words" });
  let typed = line;
  const suggest = async (/** @type {string} */ text) => {
    typed = text;
    const found = await suggestions(text, typesIn(body));
    if (typed === text) show(words, found.map((value) => el("option", { value })));
  };
  main.append(el("h1", {}, "Jobs"), el("form", { class: "line", role: "search",
    onsubmit: (/** @type {any} */ event) => {
      event.preventDefault();
      go(`jobs${query({ f: event.target.f.value })}`);
    } },
  el("label", {}, "Filter ", el("input", { id: "filter", name: "f", value: line, size: 48, list: "words",
    autocomplete: "off", spellcheck: "false", "aria-describedby": "filter-help wrong",
    oninput: (/** @type {any} */ event) => suggest(event.target.value) })),
  el("button", {}, "Show"), words),
  el("p", { id: "filter-help" }, "Such as ", el("code", {}, "status:dead queue:mail type:send age:>1h payload:.user==7")),
  wrong, views(line), body);
  suggest(line);
  let panel = /** @type {{check: () => void} | null} */ (null);
  try {
    panel = jobsPanel(body, parseFilter(line, Date.now()), () => go(`jobs${query({ f: line, at: Date.now() })}`));
  } catch (error) {
    wrong.textContent = /** @type {Error} */ (error).message;
  }
  return { view: { topic: "pulse" }, draw: () => panel?.check() };
}

/** @param {Element} body */
const typesIn = (body) => [...new Set([...body.querySelectorAll("[data-type]")].map((cell) => cell.textContent ?? ""))];

/** Views that this browser keeps. A view is an address, so it can be sent to others too. @param {string} line */
function views(line) {
  const place = el("div");
  const draw = () => {
    const saved = /** @type {Record<string, string>} */ (JSON.parse(localStorage.getItem("views") ?? "{}"));
    const keep = (/** @type {Record<string, string>} */ next) => {
      localStorage.setItem("views", JSON.stringify(next));
      draw();
    };
    place.replaceChildren(el("ul", { class: "totals" }, Object.entries(saved).map(([name, f]) => el("li", {},
      link(`jobs${query({ f })}`, name), " ", el("button", { type: "button", "aria-label": `Forget ${name}`,
        onclick: () => keep(Object.fromEntries(Object.entries(saved).filter(([each]) => each !== name))) }, "×")))),
    el("form", { class: "line", onsubmit: (/** @type {any} */ event) => {
      event.preventDefault();
      keep({ ...saved, [event.target.view.value]: line });
    } }, el("label", {}, "Name of this view ", el("input", { name: "view", required: true })), el("button", {}, "Save")));
  };
  draw();
  return el("details", {}, el("summary", {}, "Saved views"), place);
}

/**
 * A page of jobs that stays as it is until somebody asks for another. `check` counts newer jobs.
 * @param {Element} place @param {Record<string, string>} filter @param {() => void} again
 */
export function jobsPanel(place, filter, again) {
  const body = el("div", { "aria-busy": "true" });
  const news = el("p", { role: "status" });
  const picked = el("div");
  const page = { newest: "", first: true, busy: true, awaits: false };
  fill(place, filterActions(filter, again), news, picked, body);
  const select = () => {
    const ids = [...body.querySelectorAll("input:checked")].map((box) => /** @type {any} */ (box).value);
    const statuses = [...new Set([...body.querySelectorAll("input:checked")].map((box) => box.getAttribute("data-status")))];
    picked.replaceChildren(...ids.length ? [el("p", {}, `${number(ids.length)} selected`),
      filterActions({ id: ids.join(","), ...statuses.length === 1 && { status: statuses[0] ?? "" } }, again)] : []);
  };
  /** @type {(from: string, before?: any[]) => Promise<void>} */
  const turn = async (from, before = []) => {
    page.busy = true;
    try {
      const found = await get(`jobs${query({ ...filter, order: "desc", limit: PAGE - before.length, from,
        search_ms: filter.filter && SEARCH_MS })}`);
      found.jobs = before.concat(found.jobs);
      const next = found.pages.next && new URL(found.pages.next, "http://x").searchParams.get("from");
      if (!before.length) page.first = !from;
      if (!from) page.newest = found.jobs[0]?.id ?? "";
      body.replaceChildren(jobTable(found.jobs, rights.scopes.includes("manage") ? select : null),
        found.searched_to ? el("p", { class: "buttons", role: "status" }, el("span", {}, "Searched back to ", time(bornAt(found.searched_to)),
          `, ${number(found.jobs.length)} found.`), el("button", { type: "button", onclick: () => turn(next, found.jobs) }, "Search on")) : "",
        el("p", { class: "buttons" }, el("button", { type: "button", onclick: again }, "Refresh"), " ",
          from && el("button", { type: "button", onclick: () => turn("") }, "Newest"), " ",
          rights.scopes.includes("manage") && found.jobs.length > 0 && el("button", { type: "button", onclick: () => {
            for (const box of body.querySelectorAll("input[type=checkbox]")) /** @type {any} */ (box).checked = true;
            select();
          } }, "Select these"), " ",
          next && !found.searched_to && el("button", { type: "button", onclick: () => turn(next) }, "Older")));
      news.replaceChildren();
      select();
    } catch (error) {
      body.replaceChildren(el("p", { role: "alert" }, /** @type {Error} */ (error).message));
    }
    page.busy = false;
    body.removeAttribute("aria-busy");
  };
  const look = async () => {
    page.awaits = false;
    if (!body.isConnected || !page.first) return;
    if (page.busy) {
      check();
      return;
    }
    page.busy = true;
    try {
      const { jobs: found } = await get(`jobs${query({ ...filter, order: "asc", limit: MOST_NEW, from: page.newest })}`);
      const n = found.length < MOST_NEW ? number(found.length) : `${MOST_NEW} or more`;
      show(news, found.length ? el("button", { type: "button", "data-own": "", onclick: () => turn("") }, `+${n} new`) : null);
    } catch {
      // The head says that the server is silent.
    }
    page.busy = false;
  };
  // The change after which nothing else changes is looked at too, a little later.
  const check = () => {
    if (!page.awaits) setTimeout(look, CHECK_MS);
    page.awaits = true;
  };
  turn("");
  return { check };
}

/** @param {any[]} found @param {(() => void) | null} [select] Called when a row is selected. */
export const jobTable = (found, select) => table("Jobs, the newest first",
  ["id", "queue", "type", "status", "attempts", "ready at", "created"], found.map((job) => ({
    key: job.id, cells: [[select ? el("input", { type: "checkbox", value: job.id, "data-status": job.status,
      "aria-label": `Select ${job.id}`, onchange: select }) : null, jobLink(job.id)],
    queueLink(job.queue), el("span", { "data-type": "" }, job.type), badge(job.status), job.attempts,
    time(job.ready_at), time(job.created_at)] })), "No job matches.");
