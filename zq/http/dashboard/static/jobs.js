// Jobs with the filter line, and Job with its payload as it is stored.

import { filterActions, jobActions } from "./actions.js";
import { badge, bytes, copyButton, el, facts, fill, jobLink, link, queueLink, span, table, time } from "./dom.js";
import { Refusal, get, getText, query } from "./net.js";

const NAMES = { status: "status", queue: "queue", type: "type", group: "group", id: "id", error: "error",
  priority: "priority", attempts: "attempts", budget: "budgets.key", payload: "filter" };
const UNITS = /** @type {Record<string, number>} */ ({ s: 1e3, m: 6e4, h: 36e5, d: 864e5 });
const PAGE = 50;

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

/** @param {Element} main @param {URLSearchParams} values @param {(place: string) => void} go */
export function jobs(main, values, go) {
  const line = values.get("f") ?? "";
  const body = el("div");
  const wrong = el("p", { id: "wrong", role: "alert" });
  main.append(el("h1", {}, "Jobs"), el("form", { class: "line", role: "search",
    onsubmit: (/** @type {any} */ event) => {
      event.preventDefault();
      go(`jobs${query({ f: event.target.f.value })}`);
    } },
  el("label", {}, "Filter ", el("input", { id: "filter", name: "f", value: line, size: 48, list: "words",
    autocomplete: "off", spellcheck: "false", "aria-describedby": "filter-help wrong" })),
  el("button", {}, "Show"), el("datalist", { id: "words" },
    ["status:dead", "status:ready", "status:scheduled", "status:in_flight", "age:>1h", "payload:.user==7"]
      .map((value) => el("option", { value })))),
  el("p", { id: "filter-help" }, "Such as ", el("code", {}, "status:dead queue:mail type:send age:>1h payload:.user==7")),
  wrong, body);
  try {
    jobsPanel(body, parseFilter(line, Date.now()), () => go(`jobs${query({ f: line, at: Date.now() })}`));
  } catch (error) {
    wrong.textContent = /** @type {Error} */ (error).message;
  }
  return { view: { topic: "pulse" }, draw: () => undefined };
}

/**
 * A page of jobs that stays as it is until somebody asks for another.
 * @param {Element} place @param {Record<string, string>} filter @param {() => void} again
 */
export async function jobsPanel(place, filter, again) {
  const body = el("div", { "aria-busy": "true" });
  fill(place, filterActions(filter, again), body);
  const turn = async (/** @type {string} */ from) => {
    try {
      const page = await get(`jobs${query({ ...filter, order: "desc", limit: PAGE, from })}`);
      const next = page.pages.next && new URL(page.pages.next, "http://x").searchParams.get("from");
      body.replaceChildren(jobTable(page.jobs), el("p", { class: "buttons" },
        el("button", { type: "button", onclick: again }, "Refresh"), " ",
        from && el("button", { type: "button", onclick: () => turn("") }, "Newest"), " ",
        next && el("button", { type: "button", onclick: () => turn(next) }, "Older")));
    } catch (error) {
      body.replaceChildren(el("p", { role: "alert" }, /** @type {Error} */ (error).message));
    }
    body.removeAttribute("aria-busy");
  };
  await turn("");
}

/** @param {any[]} found */
export const jobTable = (found) => table("Jobs, the newest first",
  ["id", "queue", "type", "status", "attempts", "ready at", "created"], found.map((job) => ({
    key: job.id, cells: [jobLink(job.id), queueLink(job.queue), job.type, badge(job.status), job.attempts,
      time(job.ready_at), time(job.created_at)] })), "No job matches.");

/**
 * The text of a field as the server has sent it: no number is rounded, no key is dropped.
 * @param {string} text A JSON object. @param {string} name
 */
export function rawField(text, name) {
  const word = /"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s"{}[\]:,]+/gy;
  let depth = 0;
  let key = "";
  let start = -1;
  let last = "";
  for (let at = 0; at < text.length;) {
    if (/\s/.test(text[at])) {
      at += 1;
      continue;
    }
    word.lastIndex = at;
    const found = word.exec(text);
    if (!found) return undefined;
    const token = found[0];
    if (depth === 1 && start >= 0 && (token === "," || token === "}")) return text.slice(start, at).trim();
    if (depth === 1 && token === ":" && start < 0) {
      key = JSON.parse(last);
      if (key === name) start = word.lastIndex;
    }
    if (token === "{" || token === "[") depth += 1;
    if (token === "}" || token === "]") depth -= 1;
    last = token;
    at = word.lastIndex;
  }
  return undefined;
}

const FIRST = 64 * 1024;
const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d[\d.eE+-]*)|(true|false|null)/g;

/** JSON as text with colours; what is not a token stays as it is. @param {string} text */
export function printed(text) {
  const made = el("pre", { class: "payload", tabindex: "0" });
  let at = 0;
  for (const found of text.matchAll(TOKEN)) {
    made.append(text.slice(at, found.index));
    const kind = found[1] ? (found[2] ? "name" : "text") : found[3] ? "number" : "word";
    made.append(el("span", { class: kind }, found[0]));
    at = (found.index ?? 0) + found[0].length;
  }
  made.append(text.slice(at));
  return made;
}

/** @param {string} title @param {string} text */
function payloadPart(title, text) {
  const size = new TextEncoder().encode(text).length;
  const box = el("div", {}, printed(text.slice(0, FIRST)));
  if (text.length > FIRST) {
    box.append(el("button", { type: "button", onclick: () => {
      box.replaceChildren(el("pre", { class: "payload", tabindex: "0" }, text));
    } }, `Show all ${bytes(size)}`));
  }
  return el("section", { "aria-label": title }, el("h2", {}, `${title}, ${bytes(size)}`),
    el("p", { class: "buttons" }, copyButton(`Copy ${title.toLowerCase()}`, () => text)), box);
}

const SHOWN = ["payload", "result", "id", "status"];

/** @param {Element} main @param {URLSearchParams} values */
export function job(main, values) {
  const id = values.get("id") ?? "";
  const body = el("div", { "aria-busy": "true" });
  main.append(el("h1", {}, "Job ", el("span", { class: "name" }, id)), body);
  const path = `jobs/${encodeURIComponent(id)}`;
  const load = async () => {
    try {
      const [text, why, failures] = await Promise.all(
        [getText(path), get(`${path}/why`), get(`${path}/errors?order=desc`)]);
      const found = JSON.parse(text);
      const reload = () => load();
      body.replaceChildren(
        el("p", {}, badge(found.status), " in ", queueLink(found.queue), ", ", found.type), jobActions(found, reload),
        el("p", { class: "buttons" }, el("button", { type: "button", onclick: reload }, "Refresh"),
          copyButton("Copy as curl", () => `curl ${new URL(`api/${path}`, document.baseURI).href}`)),
        el("h2", {}, "Why"), el("ul", {}, why.reasons.map((/** @type {any} */ reason) =>
          el("li", { "data-code": reason.code }, reason.text, reason.until ? [", until ", time(reason.until)] : null))),
        payloadPart("Payload", rawField(text, "payload") ?? ""),
        rawField(text, "result") ? payloadPart("Result", rawField(text, "result") ?? "") : "",
        attempts(failures.errors ?? []),
        el("h2", {}, "Fields"), facts(Object.entries(found).filter(([name]) => !SHOWN.includes(name))
          .map(([name, value]) => [name, /_at$/.test(name) && typeof value === "number" ? time(value)
            : typeof value === "object" ? rawField(text, name) : String(value)])));
    } catch (error) {
      const gone = error instanceof Refusal && error.status === 404;
      body.replaceChildren(el("p", { role: "alert" }, gone ? "This job does not exist, or no longer."
        : /** @type {Error} */ (error).message));
    }
    body.removeAttribute("aria-busy");
  };
  load();
  return { view: { topic: "pulse" }, draw: () => undefined };
}

/** @param {any[]} failures */
const attempts = (failures) => el("section", { "aria-label": "Failures" }, el("h2", {}, "Failures"),
  failures.length ? el("ol", { class: "attempts" }, failures.map((failure) => el("li", {},
    `Attempt ${failure.attempt}, `, time(failure.failed_at),
    failure.dequeued_at ? ` after ${span(failure.failed_at - failure.dequeued_at)}` : "", ": ",
    failure.error_type ? `${failure.error_type}: ` : "", el("span", { class: "message" }, failure.message), " ",
    failure.signature ? link(`jobs${query({ f: `error:${failure.signature}` })}`, "jobs with this cause") : null,
    failure.backtrace ? el("details", {}, el("summary", {}, "Trace"),
      el("pre", { class: "payload", tabindex: "0" }, failure.backtrace)) : null)))
    : el("p", {}, "No attempt has failed."));

