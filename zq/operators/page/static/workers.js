// Workers: the open streams, those that need somebody first, and a page of one with its jobs.

import { actionButton, confirm, may, quoted } from "./actions.js";
import { Asked } from "./asked.js";
import { ago, brief, el, long, number, plain, rate, show } from "./dom.js";
import { get, query, serverNow } from "./net.js";
import { card, empty, menu, meter, name, pill, queueName, shortId, table, tile } from "./parts.js";

/** @param {string} id */
export const workerPlace = (id) => `workers?id=${encodeURIComponent(id)}`;

/** How many jobs it runs: those that it holds besides were sent ahead. @param {any} worker */
const busyOf = (worker) => worker.busy ?? worker.held;

/** How bad its state is, so that the worst comes first. @param {any} worker */
const rank = (worker) => (worker.silent ? 0 : worker.stuck ? 1 : worker.draining ? 2 : 3);

/** @param {any[]} workers */
const worstFirst = (workers) => [...workers].sort((one, other) => rank(one) - rank(other)
  || busyOf(other) / (other.concurrency || 1) - busyOf(one) / (one.concurrency || 1) || (one.id < other.id ? -1 : 1));

/** What it does, as a shape and a word. @param {any} worker @param {number} now */
function state(worker, now) {
  if (worker.silent) {
    const quiet = worker.seen_at === undefined ? "" : ` ${brief(now - worker.seen_at)}`;
    return el("span", { title: `holds ${number(worker.held)} jobs, and has said nothing for${quiet || " long"}` }, pill("alarm", `silent${quiet}`));
  }
  if (worker.stuck) {
    return el("span", { title: "jobs that run for more than twice the p99 of their queue" }, pill("warning", `${number(worker.stuck)} stuck`));
  }
  return worker.draining ? pill("paused", "draining") : pill("muted", "takes jobs");
}

/** Busy of slots. @param {any} worker */
const slots = (worker) => el("span", { title: `holds ${number(worker.held)} of the ${number(worker.prefetch)} that it may be sent` }, number(busyOf(worker)),
  el("span", { class: "muted" }, ` / ${number(worker.concurrency)}`));

/** Each stream with its place among those of its worker, which stays when another row comes before it. @param {any[]} workers */
function numbered(workers) {
  const seen = /** @type {Map<string, number>} */ (new Map());
  return workers.map((worker) => {
    const nth = seen.get(worker.id) ?? 0;
    seen.set(worker.id, nth + 1);
    return { ...worker, nth };
  });
}

/** Streams as a table. The keys tell two streams of one worker apart.
 * @param {any[]} workers @param {number} now @param {string} [queue] Where all are of one queue. */
export function workerTable(workers, now, queue) {
  const acts = may("manage");
  return table({ caption: queue ? `Workers of ${queue}` : "Open streams",
    columns: [{ head: "worker", is: "wname" }, { head: "state", is: "w9 st" }, { head: "queues", is: "c2" },
      { head: "busy", is: "num w6", title: "jobs that it runs, of those that it can run at once" }, { spoken: "share", is: "w6 c4" },
      { head: "done/s", is: "num w5" }, { head: "failed", is: "num w5 c3" }, { head: "address", is: "w9 c4" },
      { head: "since", is: "num w5 c4" }, ...acts ? [{ spoken: "actions", is: "do wdo" }] : []],
    rows: worstFirst(numbered(workers)).map((worker) => ({ key: `${worker.id} ${worker.since} ${worker.nth}`, cells: [
      name(worker.id, workerPlace(worker.id)), state(worker, now),
      name(worker.queues.join(", ") || "all"), slots(worker),
      meter(busyOf(worker), worker.concurrency, `${busyOf(worker)} of ${worker.concurrency} slots`), rate(worker.rate),
      worker.failed === undefined ? "–" : number(worker.failed), el("span", { class: "muted" }, worker.address), ago(worker.since, now),
      ...acts ? [[dropButton(worker.id), " ", ...menu(`More for ${worker.id}${worker.nth ? ` (${worker.nth + 1})` : ""}`, [["Its jobs", workerPlace(worker.id)], ["Drop…", () => drop(worker.id)]])]] : []] })),
    nothing: empty("No stream is open", queue ? "No worker takes jobs of this queue now." : "A worker opens one with ",
      queue ? null : el("code", {}, "GET /jobs/take")) });
}

/** @param {string} id @param {string} [look] */
const dropButton = (id, look = "small") => actionButton("manage", "Drop…", () => drop(id), { class: look, "aria-label": `Drop ${id}` });

/** @param {string} id */
const drop = (id) => confirm({
    title: `Drop the connection of ${id}`, button: "Drop it", zq: `zq workers drop ${quoted(id)}`, method: "DELETE", path: `workers/${encodeURIComponent(id)}`,
    say: "All its streams are closed. Its jobs go back to their queues, and no attempt is spent. A worker that still runs may come back.",
    done: ({ workers: gone }) => `${number(gone.length)} ${gone.length === 1 ? "stream is" : "streams are"} closed.` });

/** @param {Element} main @param {URLSearchParams} values */
export function workers(main, values) {
  const id = values.get("id");
  if (id !== null) return one(main, id);
  const said = el("span", { class: "muted" });
  const head = el("div");
  const body = el("div");
  const stuck = new Asked(stuckTable);
  const leases = new Asked(leaseTable);
  main.append(el("div", { class: "bar" }, el("h1", {}, "Workers"), said), head, body, el("div", { class: "two" },
    card("Stuck work", ["in flight for more than twice the p99 of its queue, ", stuck.age], stuck.place),
    card("Leases near their end", leases.age, leases.place)));
  return { view: { topic: "workers" }, draw: (/** @type {any} */ doc, /** @type {number} */ at) => {
    stuck.draw();
    leases.draw();
    said.textContent = `${number(doc.workers.length)} ${doc.workers.length === 1 ? "stream" : "streams"}`;
    show(head, el("section", { class: "tiles five", "aria-label": "Now" }, tiles(doc, at)));
    show(body, card("Open streams", "those that need somebody first", workerTable(doc.workers, at)));
  } };
}

/** @param {any} doc @param {number} now */
function tiles(doc, now) {
  const sum = (/** @type {(worker: any) => number} */ of) => doc.workers.reduce((/** @type {number} */ n, /** @type {any} */ each) => n + of(each), 0);
  const [busy, all] = [sum(busyOf), sum((each) => each.concurrency)];
  const silent = doc.workers.filter((/** @type {any} */ each) => each.silent);
  const stuck = doc.workers.filter((/** @type {any} */ each) => each.stuck);
  const failed = doc.workers.some((/** @type {any} */ each) => each.failed !== undefined);
  return [
    tile({ label: "Busy slots", value: number(busy), unit: `of ${number(all)}`, picture: meter(busy, all, `${busy} of ${all} slots`),
      note: `${number(Math.max(all - busy, 0))} free` }),
    tile({ label: "Done", value: rate(sum((each) => each.rate ?? 0)), unit: "/s", note: "all workers" }),
    tile({ label: "Silent", value: number(silent.length), bad: silent.length > 0, note: silent.length
      ? `${silent[0].id} holds ${number(silent[0].held)}` : "each has said something" }),
    tile({ label: "Stuck", value: number(sum((each) => each.stuck ?? 0)), unit: "jobs", warn: stuck.length > 0,
      note: stuck.length ? `on ${stuck[0].id}${stuck.length > 1 ? ` and ${stuck.length - 1} more` : ""}` : "none runs for unusually long" }),
    failed ? tile({ label: "Failed", value: number(sum((each) => each.failed ?? 0)), note: "attempts of these streams" })
      : tile({ label: "Oldest stream", value: doc.workers.length ? long(now - Math.min(...doc.workers.map((/** @type {any} */ each) => each.since))) : undefined }),
  ];
}

/** Jobs with what they are about. @param {string} caption @param {string} head @param {any[]} jobs
 * @param {(job: any) => any} figure @param {string} none @param {(job: any) => any} [worker] */
const jobTable = (caption, head, jobs, figure, none, worker) => table({ caption,
  columns: [{ head: "job", is: "w9" }, { head: "queue", is: "c1" }, { head: "type", is: "c2" },
    ...worker ? [{ head: "worker", is: "c1" }] : [], { head, is: "num w7" }, { head: "delivered", is: "num w6 c3" }],
  rows: jobs.map((job) => ({ key: job.id, cells: [shortId(job.id), queueName(job.queue), name(job.type),
    ...worker ? [worker(job)] : [], figure(job), times(job.deliveries ?? job.lease)] })), nothing: empty(none) });

/** @param {number | undefined} n */
const times = (n) => (n === undefined ? "–" : `${number(n)} ${n === 1 ? "time" : "times"}`);

const stuckTable = async () => jobTable("Jobs in flight for unusually long", "runs for", (await get("stuck")).jobs,
  (job) => el("b", { class: "warn", title: job.p99_ms === undefined ? "" : `p99 of its queue: ${brief(job.p99_ms)}` },
    long(serverNow() - job.dequeued_at)), "No job runs for unusually long");

const leaseTable = async () => jobTable("Leases with a deadline, the next one first", "ends in", (await get(`leases${query({ limit: 20 })}`)).leases,
  (job) => {
    const left = job.lease_until - serverNow();
    return el(left < 30_000 ? "b" : "span", { class: left < 30_000 ? "warn" : "" }, left > 0 ? long(left) : "now");
  }, "No lease has a deadline", (job) => name(job.worker, workerPlace(job.worker)));

// One worker

/** @param {Element} main @param {string} id */
function one(main, id) {
  const [now, acts] = [el("span"), el("span", { class: "push" })];
  const body = el("div", { class: "stackv" });
  main.append(el("div", { class: "bar" }, el("div", { class: "crumb" }, el("a", { href: "#/workers" }, "Workers"),
    el("span", { class: "muted", "aria-hidden": "true" }, "/"), el("h1", { class: "cut", title: plain(id) }, plain(id) || "No name")), now, acts), body);
  if (!id) {
    show(body, empty("No worker is named in this address", el("a", { href: "#/workers" }, "All workers")));
    return { view: { topic: "pulse" }, draw: () => undefined };
  }
  return { view: { topic: "worker", worker: id }, draw: (/** @type {any} */ doc, /** @type {number} */ at) => {
    const streams = doc.streams ?? doc.workers ?? [];
    const jobs = doc.jobs ?? [];
    show(now, streams.length > 0 && state(streams[0], at));
    show(acts, streams.length > 0 && dropButton(id, ""));
    if (!streams.length) {
      show(body, empty(`${id} has no open stream`, "It has gone, or was never here. Its jobs went back to their queues. ", el("a", { href: "#/workers" }, "All workers")));
      return;
    }
    const all = streams.reduce((/** @type {number} */ n, /** @type {any} */ each) => n + each.concurrency, 0);
    const busy = streams.reduce((/** @type {number} */ n, /** @type {any} */ each) => n + busyOf(each), 0);
    const [first] = streams;
    show(body, el("section", { class: "tiles five", "aria-label": "Now" },
      tile({ label: "Busy slots", value: number(busy), unit: `of ${number(all)}`, picture: meter(busy, all, `${busy} of ${all} slots`),
        note: `${number(first.prefetch)} are sent ahead at most` }),
      tile({ label: "Done", value: rate(streams.reduce((/** @type {number} */ n, /** @type {any} */ each) => n + (each.rate ?? 0), 0)), unit: "/s" }),
      tile({ label: "Longest run", value: jobs.length ? long(at - Math.min(...jobs.map((/** @type {any} */ job) => job.since))) : undefined,
        warn: first.stuck > 0, note: first.stuck ? `${number(first.stuck)} stuck` : "" }),
      tile({ label: "Last sign of life", value: first.seen_at === undefined ? undefined : brief(at - first.seen_at), bad: Boolean(first.silent),
        note: first.silent ? "silent while it holds jobs" : "ago" }),
      tile({ label: "Connected", value: brief(at - first.since), note: `${first.address} ${first.client ?? ""}` })),
    card("Its jobs", `${number(busy)} in flight, the longest first`, jobTable(`Jobs of ${id}`, "runs for", jobs,
      (job) => long(at - job.since), "It runs no job now")),
    doc.failures && card("Its last failures", "", failureTable(doc.failures, at)),
    card("Its streams", `${number(streams.length)}`, workerTable(streams, at)));
  } };
}

/** @param {any[]} failures @param {number} now */
const failureTable = (failures, now) => table({ caption: "Last failures of the worker",
  columns: [{ head: "job", is: "w9" }, { head: "queue", is: "w12 c1" }, { head: "type", is: "w12 c3" }, { head: "error" }, { head: "ago", is: "num w5" }],
  rows: failures.map((each, at) => ({ key: `${each.id} ${each.at ?? at}`, cells: [shortId(each.id), queueName(each.queue), name(each.type ?? "–"),
    name([each.error_type, each.message].filter(Boolean).join(": ")), ago(each.at ?? each.failed_at, now)] })),
  nothing: empty("None of its attempts has failed lately") });
