// Schedules: the scheduled jobs of the next day as bars, and the entries of cron.

import { actionButton, confirm, quoted } from "./actions.js";
import { badge, el, jobLink, link, number, queueLink, span, table, time } from "./dom.js";
import { get, query } from "./net.js";
import { once } from "./server.js";

const HOURS = 24;
const HOUR_MS = 3_600_000;
const MOST_GROUPS = 50;
const PAGE = 50;

/** @param {Element} main */
export function schedules(main) {
  const day = el("div");
  const soon = el("div");
  const crons = el("div");
  main.append(el("h1", {}, "Schedules"), el("h2", {}, "The next 24 hours"), day, el("h2", {}, "Cron"), crons,
    el("h2", {}, "Scheduled jobs"), soon,
    el("p", {}, link(`jobs${query({ f: "status:scheduled" })}`, "Find, move or cancel scheduled jobs")));
  once(day, nextDay);
  const entries = () => once(crons, () => cronTable(entries));
  entries();
  const turn = (/** @type {string} */ after) => once(soon, async () => nextJobs(await get(`scheduled${query({ after, limit: PAGE })}`), after, turn));
  turn("");
  return { view: { topic: "pulse" }, draw: () => undefined };
}

/** A page of the jobs that come next.
 * @param {any} found @param {string} after @param {(after: string) => void} turn */
function nextJobs(found, after, turn) {
  const now = Date.now();
  return [table("Scheduled jobs, the next one first", ["id", "ready at", "in", "queue", "type", "priority", "attempts"],
    found.jobs.map((/** @type {any} */ job) => ({ key: job.id, cells: [jobLink(job.id), time(job.ready_at),
      span(job.ready_at - now), queueLink(job.queue), job.type, job.priority, number(job.attempts)] })), "No job is scheduled."),
  el("p", { class: "buttons" }, el("button", { type: "button", onclick: () => turn("") }, after ? "Next ones" : "Refresh"), " ",
    found.next && el("button", { type: "button", onclick: () => turn(found.next) }, "Later ones"))];
}

/** Jobs by the hour in which they become ready: a table whose bars say the same as its numbers. */
async function nextDay() {
  const now = Date.now();
  const hours = [];
  for (let at = 0; at < HOURS; at += 1) {
    const from = now + at * HOUR_MS;
    const { count } = await get(`jobs/count${query({ status: "scheduled", ready_at: `${from}..${from + HOUR_MS - 1}` })}`);
    hours.push({ from, count });
  }
  const most = Math.max(...hours.map(({ count }) => count), 1);
  const rows = hours.filter(({ count }) => count).map(({ from, count }) => ({ key: String(from), cells: [time(from),
    number(count), el("meter", { max: most, value: count, "aria-label": `${number(count)} of ${number(most)}` })] }));
  return table("Jobs that become ready, by the hour that begins", ["from", "jobs", "share of the most"], rows,
    "No job becomes ready within 24 hours.");
}

/** @param {() => void} again */
async function cronTable(again) {
  const names = (await get("crons")).crons.slice(0, MOST_GROUPS);
  const groups = await Promise.all(names.map((/** @type {string} */ name) => get(`crons/${encodeURIComponent(name)}`)));
  const rows = groups.flatMap((group) => group.entries.map((/** @type {any} */ entry) => {
    const own = entry.timezone ?? group.timezone ?? "UTC";
    const paused = group.paused || entry.paused;
    return { key: `${group.name} ${entry.name}`, cells: [`${group.name} / ${entry.name}`, el("code", {}, entry.expression),
      own, time(entry.next_enqueue_at, own), time(entry.next_enqueue_at), time(entry.last_enqueue_at),
      queueLink(entry.job.queue), entry.job.type, entry.fault ? badge("dead", "set aside") : badge(paused ? "paused" : "scheduled"),
      el("span", { class: "buttons" }, turnButton(group, entry, again), runButton(entry))] };
  }));
  return table("Cron entries", ["entry", "expression", "zone", "next there", "next here", "last", "queue", "type", "state", "do"],
    rows, "There is no cron entry.");
}

/** @param {any} group @param {any} entry @param {() => void} again */
function turnButton(group, entry, again) {
  const verb = entry.paused ? "Resume" : "Pause";
  return actionButton("manage", `${verb}…`, () => confirm({
    title: `${verb} ${group.name} / ${entry.name}`, button: verb, method: "PATCH",
    say: entry.paused ? "It enqueues its jobs again." : "It enqueues no jobs until it is resumed.",
    zq: `zq cron ${verb.toLowerCase()} ${quoted(group.name)} ${quoted(entry.name)}`,
    path: `crons/${encodeURIComponent(group.name)}/entries/${encodeURIComponent(entry.name)}`,
    body: { paused: !entry.paused }, done: () => `The entry is ${entry.paused ? "resumed" : "paused"}.`,
  }, again));
}

/** A number that a script rounds would be another one in the job. @param {any} entry */
const runButton = (entry) => !/\d{16}/.test(JSON.stringify(entry.job)) && actionButton("enqueue", "Run now…", () => confirm({
  title: `Run ${entry.name} now`, say: "One job is enqueued, besides those of its times.", button: "Run now",
  zq: entry.job.unique_in ? undefined : `printf '%s' ${quoted(JSON.stringify(entry.job))} | zq push --file -`,
  method: "POST", path: "jobs", body: entry.job, done: (job) => `The job ${job.id} is stored.`,
}));
