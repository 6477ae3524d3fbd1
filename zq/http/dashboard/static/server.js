// Failures, Workers, Budgets and Health.

import { actionButton, confirm, may, quoted, rights } from "./actions.js";
import { badge, bytes, el, facts, jobLink, link, number, queueLink, rate, show, span, table, time } from "./dom.js";
import { jobsPanel } from "./jobs.js";
import { get, query } from "./net.js";

const still = { view: { topic: "pulse" }, draw: () => undefined };

/** Load once, and say why not. @param {Element} place @param {() => Promise<any>} load */
export async function once(place, load) {
  place.setAttribute("aria-busy", "true");
  try {
    place.replaceChildren(...[await load()].flat());
  } catch (error) {
    place.replaceChildren(el("p", { role: "alert" }, /** @type {Error} */ (error).message));
  }
  place.removeAttribute("aria-busy");
}

/** @param {Element} main @param {URLSearchParams} values @param {(place: string) => void} go */
export function failures(main, values, go) {
  const cause = values.get("error");
  const body = el("div");
  main.append(el("h1", {}, "Failures by cause"), body);
  if (cause) {
    const part = el("div");
    main.append(el("h2", {}, `Dead jobs of the cause ${cause}`), part);
    jobsPanel(part, { status: "dead", error: cause }, () => go(`failures${query({ error: cause, at: Date.now() })}`));
  }
  return { view: { topic: "failures" }, draw: (/** @type {any} */ doc) => show(body,
    table("Causes of the last 60 minutes, the most frequent first", ["message", "type", "count", "before", "queues", "first seen", "last seen", "sample", "jobs"],
      (doc.causes ?? []).map((/** @type {any} */ cause) => ({ key: cause.id, cells: [
        el("span", { class: "message" }, cause.message || cause.id), cause.error_type ?? "–", number(cause.count), number(cause.before),
        el("span", {}, cause.queues.slice(0, 3).map((/** @type {string} */ queue) => [queueLink(queue), " "]).flat()),
        time(cause.since), time(cause.latest), cause.sample ? jobLink(cause.sample) : "–",
        link(`failures${query({ error: cause.id })}`, "act on it")] })), "No attempt has failed.")) };
}

/** @param {any[]} workers */
export const workerTable = (workers) => table("Open streams", ["worker", "queues", "holds", "window", "jobs/s",
  "address", "client", "since", "unsent", "state", ...may("manage") ? ["do"] : []], workers.map((worker, at) => ({
  key: `${worker.id} ${at}`, cells: [el("span", { class: "says" }, worker.id),
    el("span", { class: "says" }, worker.queues.join(", ") || "all"),
    number(worker.held), number(worker.prefetch), rate(worker.rate),
    worker.address, worker.client, time(worker.since), bytes(worker.unsent_bytes),
    worker.draining ? badge("paused", "draining") : badge("running", "takes jobs"),
    ...may("manage") ? [dropButton(worker.id)] : []] })),
"No stream is open.");

/** @param {string} id */
function dropButton(id) {
  const button = actionButton("manage", "Drop…", () => confirm({
    title: `Drop the connection of ${id}`, button: "Drop it", zq: `zq workers drop ${quoted(id)}`, method: "DELETE", path: `workers/${encodeURIComponent(id)}`,
    say: "All its streams are closed. Its jobs go back to their queues, and no attempt is spent. A worker that still runs may come back.",
    done: ({ workers: gone }) => `${number(gone.length)} ${gone.length === 1 ? "stream is" : "streams are"} closed.` }));
  button?.setAttribute("data-stay", `drop ${id}`);
  return button;
}

/** @param {Element} main */
export function workers(main) {
  const body = el("div");
  const leases = el("div");
  const stuck = el("div");
  main.append(el("h1", {}, "Workers"), body, el("h2", {}, "Stuck work"), stuck, el("h2", {}, "Leases near their end"), leases);
  once(stuck, async () => table("In flight for more than twice as long as 99 % of the runs of the queue",
    ["job", "queue", "type", "since", "for", "p99 of its queue", "deliveries", "failures"],
    (await get("stuck")).jobs.map((/** @type {any} */ job) => ({ key: job.id, cells: [jobLink(job.id), queueLink(job.queue),
      job.type, time(job.dequeued_at), span(Date.now() - job.dequeued_at), job.p99_ms === undefined ? "–" : span(job.p99_ms),
      number(job.deliveries), number(job.attempts)] })), "No job runs for unusually long."));
  once(leases, async () => table("Leases with a deadline", ["job", "queue", "type", "worker", "delivery", "since", "until"],
    (await get("leases?limit=50")).leases.map((/** @type {any} */ lease) => ({ key: lease.id, cells: [jobLink(lease.id),
      queueLink(lease.queue), lease.type, lease.worker, lease.lease, time(lease.dequeued_at), time(lease.lease_until)] })),
    "No lease has a deadline."));
  return { view: { topic: "workers" }, draw: (/** @type {any} */ doc) => show(body, workerTable(doc.workers)) };
}

/** @param {Element} main */
export function budgets(main) {
  const body = el("div");
  main.append(el("h1", {}, "Budgets"), body);
  once(body, async () => {
    const found = (await get("budgets")).budgets;
    const heads = [...new Set(found.flatMap((/** @type {any} */ budget) => Object.keys(budget)))]
      .filter((name) => name !== "key");
    return table("Budgets", ["budget", ...heads], found.map((/** @type {any} */ budget) => ({ key: budget.key,
      cells: [link(`jobs${query({ f: `budget:${budget.key}` })}`, budget.key), ...heads.map((name) =>
        (/_at$/.test(name) ? time(budget[name]) : budget[name] === undefined ? "–"
          : typeof budget[name] === "object" ? JSON.stringify(budget[name]) : String(budget[name])))] })),
    "There is no budget.");
  });
  return still;
}

const LIMITS = { storage_full: "the disk is full", wal_full: "the write-ahead log is too large",
  inbox_full: "too many jobs wait to be stored", server_limit: "too many jobs are in flight",
  database_locked: "another program holds the database's lock" };

/** @param {Element} main */
export function health(main) {
  const body = el("div");
  main.append(el("h1", {}, "Health"), body, el("p", { class: "buttons" }, (!rights.masked || may("reveal")) && actionButton("manage", "Backup now…", () => confirm({
    title: "Backup now", button: "Download the backup", zq: "zq backup zq.tar.gz", method: "POST", path: "backup", save: "zq.tar.gz",
    say: "A copy of all that is stored at this moment, as one file for zq restore. The server goes on meanwhile.",
    done: () => "The backup is with your downloads." }))));
  return { view: { topic: "health" }, draw: (/** @type {any} */ doc) => {
    const { status } = doc;
    const ms = (/** @type {number | undefined} */ n) => (n === undefined ? "–" : `${n} ms`);
    show(body, status.limits_reached.length
      ? el("ul", { class: "findings" }, status.limits_reached.map((/** @type {keyof LIMITS} */ code) =>
        el("li", { class: "alarm", "data-key": code }, LIMITS[code] ?? code)))
      : el("p", { class: "fine" }, "No limit is reached."),
    facts([["ticks in 5 min", number(status.ticks.count)],
      ["tick p50", ms(status.ticks.p50_ms)], ["tick p99", ms(status.ticks.p99_ms)],
      ["flush p50", ms(status.flushes.p50_ms)], ["flush p99", ms(status.flushes.p99_ms)],
      ["inbox", `${number(status.inbox.jobs)} of ${number(status.inbox.jobs_limit)}`],
      ["streams", number(status.streams)], ["claims that wait", number(status.claims)],
      ["write-ahead log", `${bytes(status.log.bytes)} of ${bytes(status.log.bytes_limit)}`],
      ["log not yet copied", bytes(status.log.uncopied_bytes)],
      ["database", bytes(status.disk.database_bytes)],
      ["free on the disk", bytes(status.disk.free_bytes)],
      ["answers wait for", status.commit_mode], ["flushed by", status.flushed_by],
      ["since", time(status.since)], ["zq", `${status.zq}, API ${status.version}`]]),
    el("h2", {}, "Settings that are not at their defaults"), facts(Object.entries(status.flags)));
  } };
}
