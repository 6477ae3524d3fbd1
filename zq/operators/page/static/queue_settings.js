// The settings of a queue as a form: what holds without them, what a change does now, and one request that saves all.

import { confirm, may, quoted } from "./actions.js";
import { el, long, number, rate } from "./dom.js";
import { Field } from "./fields.js";
import { send } from "./net.js";

/** What is known of the queue at this moment. @typedef {{row: any, settings: any, inherited: any}} Now */

const unfinished = (/** @type {Now} */ { row }) => ["ready", "scheduled", "in_flight"]
  .reduce((sum, status) => sum + (row.counts?.[status] ?? 0), 0);

/** What a rate does: when nothing waits any more. @param {number | null} wanted @param {Now} now */
function rateDoes(wanted, { row, settings }) {
  const waiting = row.counts?.ready ?? 0;
  const [come, done] = [row.arrived ?? 0, row.done ?? row.completed ?? 0];
  if (!waiting) return null;
  if (wanted === null) return settings.rate ? "Without a limit its workers take as many as they can." : null;
  const left = wanted - come;
  if (left <= 0) return `${rate(come)} a second come: at ${rate(wanted)} the queue grows.`;
  return [`At ${rate(wanted)} the queue is drained in about `, el("b", {}, long((waiting / left) * 1000)),
    `, if ${rate(come)} a second keep coming`, wanted > done ? " and its workers keep up" : ""];
}

/** @param {number | null} wanted @param {Now} now */
function flightDoes(wanted, { row }) {
  const runs = row.counts?.in_flight ?? 0;
  if (wanted === null) return runs ? `${number(runs)} run now` : null;
  return runs > wanted ? `${number(runs)} run now and go on: no other begins until fewer than ${number(wanted)} run`
    : `${number(runs)} run now`;
}

/** @param {number | null} wanted @param {Now} now */
function depthDoes(wanted, now) {
  const n = unfinished(now);
  if (wanted === null) return null;
  return n >= wanted ? `${number(n)} are unfinished: from now on every new job is refused with 429`
    : `more are refused with 429; ${number(n)} now`;
}

/** The fields by their groups. A dot in a name is a part of a setting.
 * @param {() => Now} now @returns {[string, import("./fields.js").FieldPlan[]][]} */
const groups = (now) => [
  ["Flow", [
    { name: "rate", label: "Rate", kind: "positive", unit: "jobs a second", placeholder: "no limit", help: (value) => rateDoes(value, now()) },
    { name: "concurrency", label: "In flight", kind: "some", unit: "at most", placeholder: "no limit", help: (value) => flightDoes(value, now()) },
    { name: "max_depth", label: "Depth", kind: "whole", unit: "unfinished", placeholder: "no limit", help: (value) => depthDoes(value, now()) },
    { name: "priority_aging_ms", label: "Aging", kind: "duration", placeholder: "a job keeps its priority",
      help: (value) => (value === null ? null : "a job that waits gains a step of priority each time") },
    { name: "fan_out", label: "Goes to", kind: "list", help: (value) => (value
      ? "every new job becomes one in each of these queues" : null), placeholder: "itself" },
    { name: "registered", label: "Registered", kind: "choice", choices: YES, help: "known to APIs that ask for that" },
  ]],
  ["Fair keys", [
    { name: "fair.key", label: "Key from", kind: "text", placeholder: "as jobs bring it", help: "a field of new jobs, such as payload.tenant, or producer: who numbers them" },
    { name: "fair.max_in_flight", label: "In flight of a key", kind: "some", unit: "jobs", placeholder: "no limit" },
    { name: "fair.rate", label: "Rate of a key", kind: "positive", unit: "a second", placeholder: "no limit" },
  ]],
  ["Failures", [
    { name: "retry_limit", label: "Retries", kind: "whole", unit: "of a job" },
    { name: "stall_limit", label: "Stalls", kind: "whole", unit: "of a job", placeholder: "as its worker says", help: "deliveries that end without a word" },
    { name: "backoff.base_ms", label: "Backoff", kind: "duration", help: "before each retry, besides what grows" },
    { name: "backoff.exponent", label: "grows by", kind: "part", unit: "as power of the attempts" },
    { name: "backoff.jitter_ms", label: "spread", kind: "duration", help: "at random, times the attempts" },
    { name: "dead_letter", label: "Dead letters", kind: "text", help: (value) => (value
      ? "dying jobs move to this queue" : null), placeholder: "stay here" },
    { name: "dead_letter_after", label: "After", kind: "whole", unit: "failures", placeholder: "the last retry" },
  ]],
  ["Time", [
    { name: "ttl_ms", label: "Lifetime", kind: "duration", placeholder: "a job may wait for ever",
      help: (value) => (value === null ? null : "a new job that waits for longer expires") },
    { name: "lease_ms", label: "Lease", kind: "duration", help: "a worker that says nothing for so long loses the job" },
    { name: "leases_survive", label: "Survives", kind: "choice", choices: YES, help: "it outlives the stream of its worker" },
    { name: "retention.completed_ms", label: "Completed kept", kind: "duration", help: "how long jobs stay that end from now on" },
    { name: "retention.dead_ms", label: "Dead kept", kind: "duration" },
  ]],
];

/** @type {[string, string][]} */
const YES = [["", "as the server has it"], ["true", "yes"], ["false", "no"]];

/** The part of a document that a name with a dot means. @param {any} of @param {string} name */
const part = (of, name) => name.split(".").reduce((value, key) => value?.[key], of);

/** Settings that are one value of several parts. */
const WHOLE = ["backoff", "fair"];

/** As the command reads it: JSON, or a text that is none. @param {unknown} value */
export function written(value) {
  if (typeof value !== "string") return JSON.stringify(value);
  try {
    JSON.parse(value);
  } catch {
    return value;
  }
  return JSON.stringify(value);
}

/** The command that changes settings. @param {string} queue @param {any} patch */
export const commandOf = (queue, patch) => `zq settings ${quoted(queue)}${Object.entries(patch)
  .map(([key, value]) => ` ${quoted(`${key}=${written(value)}`)}`).join("")}`;

/** The form of one queue. `follow` tells it what holds now. */
export class SettingsForm {
  /** @param {string} queue */
  constructor(queue) {
    this.queue = queue;
    /** @type {Now} */
    this.now = { row: {}, settings: {}, inherited: {} };
    this.foot = el("span", { role: "status" });
    this.discard = el("button", { type: "button", class: "btn", onclick: () => this.begin() }, "Discard");
    this.save = may("manage") ? el("button", { type: "submit", class: "btn solid", "data-scope": "manage" }, "Save") : null;
    const all = groups(() => this.now).map(([title, plans]) => /** @type {[string, Field[]]} */ ([title,
      plans.map((plan) => new Field(plan, () => this.tell()))]));
    this.fields = all.flatMap(([, fields]) => fields);
    // What is typed before the server has said what holds would be lost.
    for (const field of this.fields) field.box.disabled = true;
    this.place = el("form", { class: "settings", onsubmit: (/** @type {Event} */ event) => {
      event.preventDefault();
      this.ask();
    } }, el("div", { class: "body fields" }, all.map(([title, fields]) => el("fieldset", {}, el("legend", {}, title),
      fields.map((field) => field.place)))),
    el("div", { class: "foot" }, this.foot, this.save && el("span", { class: "push acts" }, this.discard, this.save)));
    this.known = false;
  }

  /** What the server says now. What is typed stays. @param {Now} now */
  follow(now) {
    this.now = now;
    for (const field of this.fields) {
      const { name } = field.plan;
      const holds = part(now.inherited, name);
      if (holds !== undefined && field.box.nodeName === "INPUT") field.box.placeholder = `server: ${field.written(holds)}`;
      if (holds !== undefined && field.plan.choices) field.box.options[0].textContent = `server: ${holds ? "yes" : "no"}`;
      if (this.known) field.follow(part(now.settings, name));
      else {
        field.begin(part(now.settings, name));
        field.box.disabled = !may("manage");
      }
    }
    this.known = true;
    this.tell();
  }

  begin() {
    for (const field of this.fields) field.begin(part(this.now.settings, field.plan.name));
    this.tell();
  }

  /** @param {string} name */
  focus(name) {
    const field = this.fields.find((each) => each.plan.name === name);
    field?.box.focus();
    field?.box.select?.();
  }

  /** What the foot says: the changes, and what is not right. */
  tell() {
    if (!this.foot || !this.fields) return;
    const wrong = this.fields.filter((field) => field.wrong).length;
    const changes = this.fields.filter((field) => !field.wrong && field.changed);
    const words = changes.map((field) => this.change(field)).join(", ");
    const text = [changes.length && `${many(changes.length)}: ${words}.`,
      wrong && `${number(wrong)} ${wrong === 1 ? "field is" : "fields are"} not right.`].filter(Boolean).join(" ")
      || "Settings work at once, without a restart.";
    if (this.foot.textContent !== text) this.foot.textContent = text;
    this.discard.hidden = !changes.length && !wrong;
    if (!this.save) return;
    this.save.textContent = changes.length ? `Save ${many(changes.length)}…` : "Save…";
    this.save.disabled = !changes.length || wrong > 0;
  }

  /** A change in words. @param {Field} field */
  change(field) {
    const { label, unit, choices } = field.plan;
    const say = (/** @type {any} */ value) => (value === null ? "not set" : choices ? (value ? "yes" : "no") : field.written(value));
    return `${label.toLowerCase()} ${say(field.stored)} → ${say(field.value)}${field.value !== null && unit ? ` ${unit}` : ""}`;
  }

  /** What is sent. A setting of several parts is sent as a whole. @param {(field: Field) => any} valueOf */
  patch(valueOf) {
    const patch = /** @type {Record<string, any>} */ ({});
    for (const field of this.fields) {
      if (!field.changed) continue;
      const [name, inner] = field.plan.name.split(".");
      if (!inner) patch[name] = valueOf(field);
      else patch[name] = { ...patch[name], [inner]: valueOf(field) };
    }
    for (const name of WHOLE) if (patch[name]) patch[name] = this.whole(name, valueOf);
    return patch;
  }

  /** All parts of a setting: what is left open is as the server has it. @param {string} name @param {(field: Field) => any} valueOf */
  whole(name, valueOf) {
    const parts = this.fields.filter((field) => field.plan.name.startsWith(`${name}.`));
    const given = parts.map((field) => [field.plan.name.split(".")[1], valueOf(field)]);
    if (given.every(([, value]) => value === null)) return null;
    return Object.fromEntries(given.map(([inner, value]) =>
      [inner, value ?? part(this.now.inherited, `${name}.${inner}`) ?? (name === "backoff" ? 0 : null)]));
  }

  /** Say what will change, and ask. */
  ask() {
    if (this.fields.some((field) => !field.ready())) return;
    const changes = this.fields.filter((field) => field.changed);
    if (!changes.length) return;
    const path = `queues/${encodeURIComponent(this.queue)}/settings`;
    const body = this.patch((field) => field.value);
    const before = this.patch((field) => field.stored);
    confirm({ title: `Change the settings of ${this.queue}`, say: `${changes.map((field) => this.change(field)).join(", ")}.`,
      button: `Save ${many(changes.length)}`, zq: commandOf(this.queue, body), method: "PATCH", path, body,
      done: () => `${this.queue}: ${changes.map((field) => field.plan.label.toLowerCase()).join(", ")} changed.`,
      undo: () => send("PATCH", path, before) }, () => this.fields.forEach((field) => {
      field.stored = field.value;
      field.check(false);
    }));
  }
}

/** @param {number} count */
const many = (count) => `${number(count)} ${count === 1 ? "change" : "changes"}`;
