// Schedules: the scheduled jobs of the next day as bars, the entries of cron, and what comes next.

import { actionButton, confirm, may, quoted } from "./actions.js";
import { Asked } from "./asked.js";
import { ago, brief, clock, el, local, number, time } from "./dom.js";
import { freshId, get, query, serverNow } from "./net.js";
import { button, card, empty, menu, meter, name, pill, queueName, shortId, table } from "./parts.js";

const HOURS = 24;
const HOUR_MS = 3_600_000;
const MOST_GROUPS = 50;
const PAGE = 50;

/** @param {Element} main */
export function schedules(main) {
  let after = "";
  const turn = (/** @type {string} */ next) => {
    after = next;
    soon.again();
  };
  const day = new Asked(nextDay, 60_000);
  const crons = new Asked(() => cronTable(() => crons.again()));
  const soon = new Asked(async () => nextJobs(await get(`scheduled${query({ after, limit: PAGE })}`), after, turn));
  main.append(el("div", { class: "bar" }, el("h1", {}, "Schedules"),
    el("a", { class: "btn push", href: `#/jobs${query({ f: "status:scheduled" })}` }, "Find, move or cancel scheduled jobs")),
  card("Cron", crons.age, crons.place), card("The next 24 hours", ["jobs that become ready, by the hour, ", day.age], day.place),
  card("Scheduled jobs", ["the next one first, ", soon.age], soon.place));
  return { view: { topic: "pulse" }, draw: () => [day, crons, soon].forEach((each) => each.draw()) };
}

/** How long until then, or that it is over. @param {number} at @param {number} now */
const until = (at, now) => el("time", { datetime: new Date(at).toISOString(), "data-age": "" }, at > now ? brief(at - now) : "now");

/** A page of the jobs that come next.
 * @param {any} found @param {string} after @param {(after: string) => void} turn */
function nextJobs(found, after, turn) {
  const now = serverNow();
  return [table({ caption: "Scheduled jobs, the next one first",
    columns: [{ head: "job", is: "w9" }, { head: "in", is: "num w5" }, { head: "ready at", is: "w16 c2" }, { head: "queue" }, { head: "type", is: "c1" },
      { head: "priority", is: "num w6 c4" }, { head: "tries", is: "num w5 c3" }],
    rows: found.jobs.map((/** @type {any} */ job) => ({ key: job.id, cells: [shortId(job.id), until(job.ready_at, now), time(job.ready_at),
      queueName(job.queue), name(job.type), number(job.priority), number(job.attempts)] })), nothing: empty("No job is scheduled") }),
  (after || found.next) && el("div", { class: "foot" }, el("span", { class: "push acts" },
    after && button("Next ones", () => turn("")), found.next && button("Later ones", () => turn(found.next))))];
}

/** Jobs by the hour in which they become ready: a table whose bars say the same as its numbers. */
async function nextDay() {
  const now = serverNow();
  const hours = [];
  for (let at = 0; at < HOURS; at += 1) {
    const from = now + at * HOUR_MS;
    const { count } = await get(`jobs/count${query({ status: "scheduled", ready_at: `${from}..${from + HOUR_MS - 1}` })}`);
    hours.push({ from, count });
  }
  const most = Math.max(...hours.map(({ count }) => count), 1);
  return table({ caption: "Jobs that become ready, by the hour that begins",
    columns: [{ head: "from", is: "w9" }, { head: "in", is: "num w5 c1" }, { head: "jobs", is: "num w6" }, { spoken: "share of the most" }],
    rows: hours.filter(({ count }) => count).map(({ from, count }) => ({ key: String(from), cells: [el("time", { datetime: new Date(from).toISOString(), "data-age": "" }, clock(from).slice(0, 5)),
      brief(from - now), number(count), meter(count, most, `${number(count)} of ${number(most)}`)] })),
    nothing: empty("No job becomes ready within 24 hours") });
}

/** @param {() => void} again */
async function cronTable(again) {
  const names = (await get("crons")).crons.slice(0, MOST_GROUPS);
  const groups = await Promise.all(names.map((/** @type {string} */ each) => get(`crons/${encodeURIComponent(each)}`)));
  const now = serverNow();
  const acts = may("manage") || may("enqueue");
  return table({ caption: "Cron entries",
    columns: [{ head: "entry" }, { head: "state", is: "w8 st" }, { head: "expression", is: "w9" }, { head: "next in", is: "num w6" },
      { head: "next there", is: "w16 c3", title: "in the zone of the entry" }, { head: "last", is: "num w5 c2" },
      { head: "queue", is: "w12 c1" }, { head: "type", is: "w12 c4" }, ...acts ? [{ spoken: "actions", is: "do wdo" }] : []],
    rows: groups.flatMap((group) => group.entries.map((/** @type {any} */ entry) => {
      const own = entry.timezone ?? group.timezone ?? "UTC";
      return { key: `${group.name} ${entry.name}`, cells: [name(`${group.name} / ${entry.name}`), entryState(group, entry),
        el("code", { title: own }, entry.expression), entry.next_enqueue_at ? until(entry.next_enqueue_at, now) : "–",
        entry.next_enqueue_at ? el("span", { class: "cut", title: own }, local(entry.next_enqueue_at, own)) : "–", ago(entry.last_enqueue_at, now),
        queueName(entry.job.queue), name(entry.job.type), ...acts ? [[turnButton(group, entry, again), " ", ...menu(`More for ${group.name} / ${entry.name}`, [["Its queue", `queue${query({ name: entry.job.queue })}`],
          may("manage") && [entry.paused ? "Resume…" : "Pause…", () => turnEntry(group, entry, again)], may("enqueue") && canRun(entry) && ["Run now…", () => runEntry(entry)]])]] : []] };
    })), nothing: empty("There is no cron entry", "Programs and ", el("code", {}, "zq cron"), " define them.") });
}

/** @param {any} group @param {any} entry */
function entryState(group, entry) {
  if (entry.fault) return el("span", { title: entry.fault }, pill("alarm", "set aside"));
  return group.paused || entry.paused ? pill("paused") : pill("scheduled");
}

/** What helps a row now: it is paused or resumed. @param {any} group @param {any} entry @param {() => void} again */
const turnButton = (group, entry, again) => actionButton("manage", entry.paused ? "Resume…" : "Pause…", () => turnEntry(group, entry, again),
  { class: "small", "aria-label": `${entry.paused ? "Resume" : "Pause"} ${group.name} / ${entry.name}` });

/** @param {any} group @param {any} entry @param {() => void} again */
function turnEntry(group, entry, again) {
  const verb = entry.paused ? "Resume" : "Pause";
  confirm({ title: `${verb} ${group.name} / ${entry.name}`, button: verb, method: "PATCH",
    say: entry.paused ? "It enqueues its jobs again." : "It enqueues no jobs until it is resumed.",
    zq: `zq cron ${verb.toLowerCase()} ${quoted(group.name)} ${quoted(entry.name)}`,
    path: `crons/${encodeURIComponent(group.name)}/entries/${encodeURIComponent(entry.name)}`,
    body: { paused: !entry.paused }, done: () => `${group.name} / ${entry.name} is ${entry.paused ? "resumed" : "paused"}.` }, again);
}

/** A number that a script rounds would be another one in the job. @param {any} entry */
const canRun = (entry) => !/\d{16}/.test(JSON.stringify(entry.job));

/** @param {any} entry */
const runEntry = (entry) => confirm({ title: `Run ${entry.name} now`, say: "One job is enqueued, besides those of its times.", button: "Run now",
  zq: entry.job.unique_in ? undefined : `printf '%s' ${quoted(JSON.stringify(entry.job))} | zq push --file -`,
  method: "POST", path: "jobs", body: { dedupe: freshId(), ...entry.job }, done: (job) => `The job ${job.id} is stored.` });
