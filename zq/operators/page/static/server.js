// Health: the disk, the log, the limits, the settings, a backup, and who may do what.

import { actionButton, confirm, may, rights } from "./actions.js";
import { Asked } from "./asked.js";
import { bytes, el, long, number, show } from "./dom.js";
import { get } from "./net.js";
import { card, empty, name, table, tile } from "./parts.js";

const LIMITS = { storage_full: "the disk is full", wal_full: "the write-ahead log is too large",
  inbox_full: "too many jobs wait to be stored", server_limit: "too many jobs are in flight",
  database_locked: "another program holds the database's lock" };

/** From here on a flush is slow, in milliseconds. */
const SLOW_MS = 500;

/** @param {number | undefined} n */
const ms = (n) => (n === undefined ? "–" : `${n} ms`);

/** @param {Element} main */
export function health(main) {
  const body = el("div", { class: "stackv" });
  const keys = new Asked(keyTable, 30_000);
  const backup = (!rights.masked || may("reveal")) && actionButton("manage", "Backup now…", () => confirm({
    title: "Backup now", button: "Download the backup", zq: "zq backup zq.tar.gz", method: "POST", path: "backup", save: "zq.tar.gz",
    say: "A copy of all that is stored at this moment, as one file for zq restore. The server goes on meanwhile.",
    done: () => "The backup is with your downloads." }), { class: "push" });
  main.append(el("div", { class: "bar" }, el("h1", {}, "Health"), backup || ""), body, card("Keys and scopes", keys.age, keys.place));
  return { view: { topic: "health" }, draw: (/** @type {any} */ doc, /** @type {number} */ at) => {
    keys.draw();
    const { status } = doc;
    show(body, limits(status), el("section", { class: "tiles", "aria-label": "Now" }, tiles(status, at)),
      el("div", { class: "two" }, card("The server", "", el("dl", { class: "body facts" }, pairs(serverFacts(status)))),
        card("Settings that are not at their defaults", "", Object.keys(status.flags).length
          ? el("dl", { class: "body facts" }, pairs(Object.entries(status.flags).map(([key, value]) => [key, name(String(value))])))
          : empty("All are at their defaults"))));
  } };
}

/** @param {[string, any][]} of */
const pairs = (of) => of.flatMap(([key, value]) => [el("dt", {}, key), el("dd", {}, value)]);

/** @param {any} status */
const limits = (status) => el("section", { class: "card", "aria-label": "Limits" }, el("ul", { class: "findings" }, status.limits_reached.length
  ? status.limits_reached.map((/** @type {keyof LIMITS} */ code) => el("li", { class: "alarm", "data-key": code },
    el("span", { class: "kind" }, "Limit"), el("span", { class: "cut" }, LIMITS[code] ?? code)))
  : el("li", { class: "quiet", "data-key": "none" }, el("span", { class: "kind" }, "Limits"), el("span", { class: "cut" }, "None is reached."))));

/** @param {any} status @param {number} now */
const tiles = (status, now) => [
  tile({ label: "Flush p99", value: ms(status.flushes.p99_ms), warn: status.flushes.p99_ms > SLOW_MS, note: `p50 ${ms(status.flushes.p50_ms)}, of 5 min` }),
  tile({ label: "Tick p99", value: ms(status.ticks.p99_ms), note: `p50 ${ms(status.ticks.p50_ms)}, ${number(status.ticks.count)} in 5 min` }),
  tile({ label: "Free on the disk", value: status.disk.free_bytes === undefined ? "unknown" : bytes(status.disk.free_bytes), note: `the database has ${bytes(status.disk.database_bytes)}` }),
  tile({ label: "Write-ahead log", value: bytes(status.log.bytes), unit: `of ${bytes(status.log.bytes_limit)}`, note: `${bytes(status.log.uncopied_bytes)} not yet copied` }),
  tile({ label: "Inbox", value: number(status.inbox.jobs), unit: `of ${number(status.inbox.jobs_limit)}`, note: "jobs that wait to be stored" }),
  tile({ label: "Runs for", value: long(now - status.since), note: `zq ${status.zq}, API ${status.version}` }),
];

/** @param {any} status @returns {[string, any][]} */
const serverFacts = (status) => [["streams", number(status.streams)], ["claims that wait", number(status.claims)],
  ["answers wait for", status.commit_mode], ["flushed by", status.flushed_by], ["ticks in 5 min", number(status.ticks.count)],
  ["flush p99", ms(status.flushes.p99_ms)], ["database", bytes(status.disk.database_bytes)], ["zq", status.zq]];

async function keyTable() {
  if (!rights.name) return empty("There are no keys", "Whoever reaches this page may do all that it offers.");
  const own = { name: rights.name, scopes: rights.scopes, queues: rights.queues };
  const found = may("manage") && !own.queues.length ? (await get("keys")).keys : [own];
  return [el("p", { class: "body" }, `You are signed in by the key ${own.name}.`), table({ caption: "Keys",
    columns: [{ head: "key", is: "wname" }, { head: "scopes" }, { head: "queues", is: "w16 c1" }],
    rows: found.map((/** @type {any} */ key) => ({ key: key.name, cells: [name(key.name), name(key.scopes.join(", ")),
      name(key.queues.map((/** @type {string} */ each) => `${each}*`).join(", ") || "all")] })) })];
}
