// A job: what can be done with it, why it does not run, what has become of it, and its payload as it is stored.

import { curlOf, may, rights, verbsOf } from "./actions.js";
import { brief, bytes, el, link, number, plain, show, told } from "./dom.js";
import { Refusal, ask, get, query, serverNow } from "./net.js";
import { banner, button, copied, empty, iconButton, name, panel, pill, queueName, short, skeleton, toast } from "./parts.js";
import { hiddenIn, printed, rawField } from "./raw.js";

/** @typedef {import("./dom.js").Child} Child */
/** What the server says of a job: its document as text and as values, its reasons, its failures, and others that died of its cause.
 * @typedef {{text: string, job: any, reasons: any[], errors: any[], alike?: number}} Known */

const FIRST = 64 * 1024;
const AGAIN_MS = 1500;

/** How long ago, or in how long. @param {number} at @param {number} now */
export const when = (at, now) => el("time", { datetime: new Date(at).toISOString(), "data-age": "" },
  at > now + 500 ? `in ${brief(at - now)}` : now - at < 1000 ? "just now" : `${brief(now - at)} ago`);

/** A job that is shown: beside its list, or on a page of its own. It is asked for again every few seconds. */
export class JobView {
  /** @param {string} id @param {{close?: () => void, step?: (by: number) => void, changed?: () => void}} around Without `close` it is a page. */
  constructor(id, around = {}) {
    this.id = id;
    this.around = around;
    this.place = el("div", { class: "job", "aria-busy": "true" });
    this.known = /** @type {Known | null} */ (null);
    this.revealed = /** @type {{text: string, errors: any[]} | null} */ (null);
    this.gone = "";
    this.late = "";
    this.whole = false;
    this.asked = 0;
    this.asks = false;
    /** Of which question the answer counts. */
    this.turn = 0;
    this.now = serverNow();
    // It can be closed before it is there.
    this.draw();
    this.load();
  }

  /** Ages go on, and what is old is asked for again. @param {number} at By the server's clock. */
  tick(at) {
    this.now = at;
    if (this.asks || !this.place.isConnected) return;
    if (performance.now() - this.asked >= AGAIN_MS && !this.gone) this.load();
    else this.draw();
  }

  async load() {
    const mine = this.turn += 1;
    this.asks = true;
    const path = `jobs/${encodeURIComponent(this.id)}`;
    try {
      const [text, why, failures] = await Promise.all([read(path), get(`${path}/why`), read(`${path}/errors?order=desc`).then(JSON.parse)]);
      const job = JSON.parse(text);
      const [latest] = failures.errors ?? [];
      const alike = job.status !== "dead" || !latest?.signature ? undefined : this.known?.alike
        ?? (await get(`jobs/count${query({ status: "dead", error: latest.signature })}`)).count;
      if (mine !== this.turn) return;
      this.known = { text, job, reasons: why.reasons, errors: failures.errors ?? [], alike };
      this.late = "";
    } catch (error) {
      if (mine !== this.turn) return;
      if (error instanceof Refusal && error.status === 404) this.gone = this.known ? "It is gone: somebody has deleted it, or it is no longer kept." : "gone";
      else this.late = /** @type {Error} */ (error).message;
    }
    this.asked = performance.now();
    this.asks = false;
    this.place.removeAttribute("aria-busy");
    this.draw();
  }

  async reveal() {
    const path = `jobs/${encodeURIComponent(this.id)}`;
    try {
      const [text, errors] = await Promise.all([read(path, "reveal"), read(`${path}/errors?order=desc`, "reveal").then(JSON.parse)]);
      this.revealed = { text, errors: errors.errors ?? [] };
    } catch (error) {
      toast(/** @type {Error} */ (error).message, { failed: true });
    }
    this.draw();
  }

  draw() {
    if (!this.known) {
      const title = el(this.around.close ? "h2" : "h1", {}, "Job ", el("span", { class: "id" }, short(this.id)));
      show(this.place, this.framed([title], [], [!this.gone && !this.late ? skeleton(4, 2) : this.gone
        ? empty("There is no such job", `No job has the id ${plain(this.id)}, or no longer: it may be deleted, or no longer kept.`)
        : banner("This job cannot be shown.", this.late, { failed: true, inner: true, button: button("Try again", () => this.load(), { class: "small" }) })]));
      return;
    }
    const { job } = this.known;
    const text = this.revealed?.text ?? this.known.text;
    const errors = this.revealed?.errors ?? this.known.errors;
    const after = () => {
      this.load();
      this.around.changed?.();
    };
    const verbs = this.gone ? [] : verbsOf(job, after).map(({ verb, label, act, look }) =>
      button(label, act, { class: look, "data-verb": verb, "data-scope": "manage" }));
    const last = verbs.at(-1);
    show(this.place, this.framed(
      [el(this.around.close ? "h2" : "h1", { class: "cut", title: plain(job.type) }, plain(job.type)), this.gone ? pill("cancelled", "gone") : pill(job.status),
        el("span", { class: "id muted", title: job.id }, short(job.id)), iconButton("copy", "Copy the whole id", () => copied(job.id, "The id is copied."), { class: "ghost small copy", "data-verb": "copy" })],
      [...verbs.slice(0, -1), button("Copy as curl", () => copied(curlOf("GET", `jobs/${encodeURIComponent(job.id)}`), "The line is copied.")), last],
      [this.gone ? el("section", { "data-key": "gone" }, el("p", { class: "why", role: "status" }, this.gone)) : null,
        this.late ? el("section", { "data-key": "late" }, el("p", { class: "bad", role: "status" }, `${this.late} What is shown is of `, when(this.now - (performance.now() - this.asked), this.now), ".")) : null,
        this.gone ? null : part("why", job.status === "in_flight" ? "Where it is" : ["completed", "cancelled"].includes(job.status) ? "Why it is not run" : "Why it does not run", null,
          reasons(this.known, this.now)),
        part("course", "What has become of it", null, el("ol", { class: "steps" }, course(job, errors, this.now))),
        errors.length ? failurePart(errors[0]) : null,
        this.payloadPart("Payload", rawField(text, "payload") ?? ""),
        rawField(text, "result") ? this.payloadPart("Result", rawField(text, "result") ?? "") : null,
        part("fields", "Fields", null, el("dl", { class: "facts" }, fieldsOf(job, text)))]));
  }

  /** @param {Child[]} head @param {Child[]} verbs @param {Child[]} sections */
  framed(head, verbs, sections) {
    const bar = verbs.length ? el("div", { class: "bar" }, verbs) : null;
    const { close, step } = this.around;
    if (!close) {
      return el("div", { class: "card", role: "region", "aria-label": `Job ${short(this.id)}` }, el("header", {}, el("div", { class: "crumb" }, head), bar), sections);
    }
    const made = panel(`Job ${short(this.id)}`, head, sections, close, [
      step && iconButton("up", "Job before (k)", () => step(-1)), step && iconButton("down", "Job after (j)", () => step(1)),
      iconButton("out", "Open on its own page", () => {
        location.hash = `#/job${query({ id: this.id })}`;
      })]);
    if (bar) made.querySelector("header")?.append(bar);
    return made;
  }

  /** @param {string} title @param {string} text */
  payloadPart(title, text) {
    const size = new TextEncoder().encode(text).length;
    const what = title.toLowerCase();
    const hidden = rights.masked && !this.revealed && may("reveal") ? hiddenIn(text) : 0;
    return part(what, title, bytes(size), [
      el("pre", { class: "code", role: "group", tabindex: "0", "aria-label": title, "data-stay": `${this.whole} ${text}` },
        this.whole ? plain(text) : printed(text.slice(0, FIRST))),
      text.length > FIRST && !this.whole ? el("p", {}, button(`Show all ${bytes(size)}`, () => {
        this.whole = true;
        this.draw();
      }, { class: "small" })) : null],
    [hidden ? button(`Reveal ${hidden} hidden ${hidden === 1 ? "field" : "fields"}`, () => this.reveal(), { class: "ghost small", "data-scope": "reveal" }) : null,
      iconButton("copy", `Copy the ${what}`, () => copied(text, `The ${what} is copied.`), { class: "ghost small copy" })]);
  }
}

/** The text of an answer. @param {string} path @param {string} [place] */
const read = async (path, place = "api") => (await ask(`${place}/${path}`)).text();

/** @param {string} key @param {string} title @param {Child} note @param {Child | Child[]} content @param {Child[]} [more] */
const part = (key, title, note, content, more) => el("section", { "data-key": key, "aria-label": title },
  el("h2", {}, title, note ? [" ", el("span", { class: "muted" }, note)] : null, more ? el("span", { class: "push acts" }, more) : null), content);

/** Why it does not run. @param {Known} known @param {number} now */
function reasons({ job, reasons: found, errors, alike }, now) {
  if (job.status !== "dead") {
    return found.map((reason) => el("p", { class: "why", "data-code": reason.code }, told(reason.text),
      reason.until && !reason.text.includes(" until ") ? [", until ", when(reason.until, now)] : null));
  }
  const n = job.attempts;
  const [latest] = errors;
  return el("p", { class: "why", "data-code": "dead" }, `It is dead: ${n === 1 ? "its attempt has" : `${number(n)} attempts have`} failed${
    job.reason === "killed" ? ", and its worker gave it up" : ""}`, latest ? [", the last one ", when(latest.failed_at, now)] : null,
  ". It runs again only if you requeue it.", alike && alike > 1 ? [` ${number(alike - 1)} other dead ${alike === 2 ? "job has" : "jobs have"} `,
    link(`jobs${query({ f: `status:dead cause:${latest.signature}` })}`, "the same cause"), "."] : null);
}

/** @param {string} text @param {number} at @param {number} now @param {{is?: string, more?: Child}} [look] */
const step = (text, at, now, { is, more } = {}) => ({ at, node: el("li", { class: is, "data-key": text + at }, el("span", {}, text), when(at, now), more) });

/** What has become of a job: each step with its time, and the attempts of one cause as one. @param {any} job @param {any[]} errors The latest first. @param {number} now */
function course(job, errors, now) {
  const oldest = [...errors].reverse();
  const first = oldest[0]?.dequeued_at ?? job.dequeued_at;
  const due = job.first_ready_at ?? (errors.length ? job.created_at : job.ready_at);
  const steps = [step(due > job.created_at + 1000 ? "Stored for later" : "Stored, ready at once", job.created_at, now)];
  if (first) steps.push(step(`Waited ${brief(first - Math.max(due, job.created_at))}, taken${oldest[0]?.worker ? ` by ${plain(oldest[0].worker)}` : ""}`, first, now));
  for (const run of runs(oldest)) steps.push(attempts(run, job, now, run.includes(errors[0])));
  if (job.status === "in_flight" && errors.length) steps.push(step("Taken again", job.dequeued_at, now));
  if (job.status === "completed") steps.push(step("Completed", job.completed_at, now));
  if (job.cancelled_at) steps.push(step("Cancelled", job.cancelled_at, now));
  if (job.status === "expired" && job.failed_at) steps.push(step("Expired before it ran", job.failed_at, now, { is: "failed end" }));
  if (["ready", "scheduled"].includes(job.status) && job.ready_at > job.created_at + 1000) steps.push(step(errors.length ? "Ready again" : "Ready", job.ready_at, now));
  if (job.lease_until) steps.push(step("Its lease ends", job.lease_until, now));
  if (job.purge_at) steps.push(step(job.status === "dead" ? "Deleted if nobody requeues it" : "Forgotten", job.purge_at, now));
  return steps.sort((one, other) => one.at - other.at).map(({ node }) => node);
}

/** Attempts in a row that failed of one cause; the first and the last one stand alone. @param {any[]} oldest @returns {any[][]} */
function runs(oldest) {
  const found = /** @type {any[][]} */ ([]);
  oldest.forEach((each, at) => {
    const before = found.at(-1);
    const alone = at === 0 || at === oldest.length - 1 || !before || found.length === 1;
    if (!alone && before[0].signature === each.signature) before.push(each);
    else found.push([each]);
  });
  return found;
}

/** @param {any[]} run @param {any} job @param {number} now @param {boolean} isLast */
function attempts(run, job, now, isLast) {
  const [first, last] = [run[0], run[run.length - 1]];
  if (run.length > 1) {
    return { at: first.failed_at, node: el("li", { "data-key": `attempts ${first.attempt}` }, el("details", {},
      el("summary", {}, `Attempts ${first.attempt} to ${last.attempt} failed, ${run.length} times with one cause`),
      el("ol", {}, run.map((each) => el("li", { class: "cut muted" }, `${each.attempt}: `, when(each.failed_at, now), ` ${plain(each.message)}`)))),
    when(last.failed_at, now)) };
  }
  const took = first.dequeued_at ? ` after ${brief(first.failed_at - first.dequeued_at)}` : "";
  const died = isLast && job.status === "dead";
  return { at: first.failed_at, node: el("li", { class: `failed${died ? " end" : ""}`, "data-key": `attempt ${first.attempt}` },
    el("span", {}, `Attempt ${first.attempt} failed${took}`, died ? [": ", el("b", { class: "bad" }, "dead")] : null), when(first.failed_at, now),
    died ? null : name([first.error_type, first.message].filter(Boolean).join(": "))) };
}

/** @param {any} failure */
function failurePart(failure) {
  const text = [[failure.error_type, failure.message].filter(Boolean).join(": "), failure.backtrace].filter(Boolean).join("\n").trimEnd();
  return part("error", "Last error", failure.worker ? `by ${plain(failure.worker)}` : null,
    el("pre", { class: "code", role: "group", tabindex: "0", "aria-label": "Last error", "data-stay": text }, text.split("\n").map(plain).join("\n")),
    [failure.signature ? el("a", { class: "btn ghost small", href: `#/jobs${query({ f: `cause:${failure.signature}` })}` }, "All of this cause") : null,
      iconButton("copy", "Copy the error", () => copied(text, "The error is copied."), { class: "ghost small copy" })]);
}

/** What the other parts tell. */
const SHOWN = ["payload", "result", "id", "status", "type", "last_error", "created_at", "ready_at", "dequeued_at", "failed_at", "completed_at",
  "cancelled_at", "lease_until", "purge_at"];

/** @param {any} job @param {string} text */
const fieldsOf = (job, text) => Object.entries(job).filter(([field]) => !SHOWN.includes(field)).flatMap(([field, value]) => [
  el("dt", {}, field.replace(/_(at|ms)$/, "").replaceAll("_", " ")),
  el("dd", { class: field === "queue" ? null : "cut" }, field === "queue" ? queueName(value) : /_at$/.test(field) && typeof value === "number" ? stamp(value)
    : typeof value === "object" ? rawField(text, field) : plain(String(value)))]);

/** @param {number} ms */
const stamp = (ms) => told(`${new Date(ms).toISOString().slice(0, 19)}Z`);

/** @param {Element} main @param {URLSearchParams} values */
export function job(main, values) {
  const id = values.get("id")?.trim() ?? "";
  if (!id) {
    main.append(el("h1", {}, "Job"), empty("This address names no job", "A job is found by its id, or in the list of ", link("jobs", "Jobs"), "."));
    return { view: { topic: "pulse" }, draw: () => undefined };
  }
  const view = new JobView(id);
  main.append(view.place);
  return { view: { topic: "pulse" }, draw: (/** @type {any} */ _doc, /** @type {number} */ at) => view.tick(at) };
}
