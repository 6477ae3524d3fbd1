// A job: why it does not run, and its payload as it is stored.

import { jobActions, may, rights } from "./actions.js";
import { badge, bytes, copyButton, el, facts, link, queueLink, span, time, told } from "./dom.js";
import { Refusal, ask, get, query } from "./net.js";
import { once } from "./server.js";

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

/**
 * The text of a field as the server has sent it: no number is rounded, no key is dropped.
 * @param {string} text A JSON object. @param {string} name
 */
export function rawField(text, name) {
  const word = /[{}[\]:,]|[^\s"{}[\]:,]+/gy;
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
    const token = text[at] === '"' ? text.slice(at, endOfString(text, at)) : word.exec(text)?.[0];
    if (!token) return undefined;
    if (depth === 1 && start >= 0 && (token === "," || token === "}")) return text.slice(start, at).trim();
    if (depth === 1 && token === ":" && start < 0) {
      key = JSON.parse(last);
      if (key === name) start = at + 1;
    }
    if (token === "{" || token === "[") depth += 1;
    if (token === "}" || token === "]") depth -= 1;
    last = token;
    at += token.length;
  }
  return undefined;
}

const FIRST = 64 * 1024;
// A string that is cut off goes on to the end: otherwise each quote within it would be tried as a beginning.
const TOKEN = /("[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?$))(\s*:)?|(-?\d[\d.eE+-]*)|(true|false|null)/g;

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
  const next = values.get("next");
  const body = el("div", { "aria-busy": "true" });
  main.append(el("h1", {}, "Job ", el("span", { class: "name" }, id)), body);
  if (next) {
    once(body, async () => {
      const [first] = (await get(`jobs${query({ queue: next, status: "ready", limit: 1 })}`)).jobs;
      if (first && body.isConnected) location.replace(`#/job${query({ id: first.id })}`);
      return first ? "" : el("p", {}, "No job of ", queueLink(next), " waits any more.");
    });
    return { view: { topic: "pulse" }, draw: () => undefined };
  }
  const path = `jobs/${encodeURIComponent(id)}`;
  let place = "api";
  const load = async () => {
    const read = async (/** @type {string} */ of) => (await ask(`${place}/${of}`)).text();
    try {
      const [text, why, failures] = await Promise.all(
        [read(path), get(`${path}/why`), read(`${path}/errors?order=desc`).then(JSON.parse)]);
      const found = JSON.parse(text);
      const reload = () => load();
      body.replaceChildren(
        el("p", {}, badge(found.status), " in ", queueLink(found.queue), ", ", found.type), course(found),
        jobActions(found, reload),
        el("p", { class: "buttons" }, el("button", { type: "button", onclick: reload }, "Refresh"),
          copyButton("Copy as curl", () => `curl ${new URL(`api/${path}`, document.baseURI).href}`),
          rights.masked && place === "api" && may("reveal") && el("button", { type: "button", "data-scope": "reveal",
            onclick: () => {
              place = "reveal";
              load();
            } }, "Reveal what is hidden")),
        el("h2", {}, "Why"), el("ul", {}, why.reasons.map((/** @type {any} */ reason) =>
          el("li", { "data-code": reason.code }, told(reason.text),
            reason.until && !reason.text.includes(" until ") ? [", until ", time(reason.until)] : null))),
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

const COURSE = { created_at: "stored", ready_at: "ready", dequeued_at: "delivered", failed_at: "failed",
  completed_at: "completed", cancelled_at: "cancelled", purge_at: "forgotten" };

/** What has become of a job, and when. @param {any} job */
const course = (job) => el("ol", { class: "course", "aria-label": "What has become of it" },
  Object.entries(COURSE).filter(([name]) => job[name]).sort(([one], [two]) => job[one] - job[two])
    .map(([name, word]) => el("li", {}, `${word} `, time(job[name]))));

/** @param {any[]} failures */
const attempts = (failures) => el("section", { "aria-label": "Failures" }, el("h2", {}, "Failures"),
  failures.length ? el("ol", { class: "attempts" }, failures.map((failure) => el("li", {},
    `Attempt ${failure.attempt}, `, time(failure.failed_at),
    failure.dequeued_at ? ` after ${span(failure.failed_at - failure.dequeued_at)}` : "",
    failure.worker ? ` by ${failure.worker}` : "", ": ",
    failure.error_type ? `${failure.error_type}: ` : "", el("span", { class: "message" }, failure.message), " ",
    failure.signature ? link(`jobs${query({ f: `error:${failure.signature}` })}`, "jobs with this cause") : null,
    failure.backtrace ? el("details", {}, el("summary", {}, "Trace"),
      el("pre", { class: "payload", tabindex: "0" }, failure.backtrace)) : null)))
    : el("p", {}, "No attempt has failed."));

