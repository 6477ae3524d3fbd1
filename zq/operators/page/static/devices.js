// Devices: the servers that forward their jobs to this one, those that need somebody first, and a page of one with its lanes.

import { actionButton, confirm, may, quoted } from "./actions.js";
import { Asked } from "./asked.js";
import { ago, bytes, el, long, number, plain, time } from "./dom.js";
import { get, query, serverNow } from "./net.js";
import { briefly, button, card, empty, menu, meter, name, pill, queueName, segment, table, tile } from "./parts.js";

const PAGE = 50;
const ORDERS = { silence: "silent", lag: "behind", name: "by name" };

/** What is wrong with a device, as a shape and a word. @type {Record<string, [string, string]>} */
const FAULTS = { silent: ["alarm", "silent"], behind: ["warning", "behind"], clock: ["warning", "clock off"] };

/** @param {string} device */
const place = (device) => `devices?name=${encodeURIComponent(device)}`;

/** The worst that is wrong with it. @param {any} device */
const state = ({ faults }) => (faults ? el("span", { title: faults.map((/** @type {string} */ each) => FAULTS[each][1]).join(", ") },
  pill(...FAULTS[faults[0]])) : pill("muted", "reports"));

/** How far its clock is ahead or behind. @param {any} device */
const clockOf = ({ clock_ms: ms, faults }) => el(faults?.includes("clock") ? "b" : "span", { class: faults?.includes("clock") ? "warn" : "" },
  Math.abs(ms) < 1000 ? "right" : `${ms < 0 ? "−" : "+"}${long(Math.abs(ms))}`);

/** @param {Element} main @param {URLSearchParams} values */
export function devices(main, values) {
  const chosen = values.get("name");
  if (chosen !== null) return one(main, chosen);
  let order = "silence";
  let skip = 0;
  const turn = (/** @type {{order?: string, skip?: number}} */ to) => {
    ({ order, skip } = { order, skip: 0, ...to });
    all.again();
  };
  const all = new Asked(async () => listed(await get(`devices${query({ order, from: skip, limit: PAGE })}`), order, skip, turn));
  const own = new Asked(async () => sending((await get("forward")).lanes));
  main.append(el("div", { class: "bar" }, el("h1", {}, "Devices"), all.age), own.place, all.place);
  return { view: { topic: "pulse" }, draw: () => [own, all].forEach((part) => part.draw()) };
}

/** @param {any} found @param {string} order @param {number} skip @param {(to: any) => void} turn */
function listed(found, order, skip, turn) {
  const now = serverNow();
  const acts = may("manage");
  return [el("section", { class: "tiles five", "aria-label": "Now" },
    tile({ label: "Devices", value: number(found.total), note: "have reported" }),
    tile({ label: "Silent", value: number(found.silent), bad: found.silent > 0, note: "three reports are missing" }),
    tile({ label: "Behind", value: number(found.behind), warn: found.behind > 0, note: "the oldest unsent job is an hour old" }),
    tile({ label: "Clock off", value: number(found.clock), warn: found.clock > 0, note: "by a minute or more" }),
    tile({ label: "Unsent", value: number(found.jobs), unit: "jobs", note: bytes(found.bytes) })),
  card("All devices", "as they last reported", table({ caption: "Devices",
    columns: [{ head: "device", is: "wname" }, { head: "state", is: "w9 st" }, { head: "seen", is: "num w6", title: "when it was last heard of" },
      { head: "unsent", is: "num w6" }, { head: "oldest", is: "num w6 c1", title: "age of its oldest unsent job" }, { head: "bytes", is: "num w7 c3" },
      { head: "clock", is: "num w7 c2" }, { head: "version", is: "w9 c4" }, ...acts ? [{ spoken: "actions", is: "do wdo" }] : []],
    rows: found.devices.map((/** @type {any} */ each) => ({ key: each.name, cells: [name(each.name, place(each.name)), state(each), ago(each.seen_at, now),
      number(each.jobs), briefly(each.oldest_ms), bytes(each.bytes), clockOf(each), name(each.version),
      ...acts ? [[forgetButton(each.name), " ", ...menu(`More for ${each.name}`, [["Its lanes", place(each.name)], ["Forget…", () => forget(each.name)]])]] : []] })),
    nothing: empty("No device has reported", "A server with ", el("code", {}, "--forward"), " reports to the server that it forwards to.") }),
  segment("Order of the devices", Object.keys(ORDERS), order, (to) => turn({ order: to }), ORDERS)),
  (skip || found.next) && el("div", { class: "foot" }, el("span", { class: "push acts" },
    skip > 0 && button("First ones", () => turn({})), found.next && button("Next ones", () => turn({ skip: found.next }))))];
}

/** The lanes by which this server is a device of others. @param {any[]} lanes */
function sending(lanes) {
  const now = serverNow();
  return lanes.length ? [card("Lanes of this server", "what it sends to others", table({ caption: "Lanes of this server",
    columns: [{ head: "lane" }, { head: "state", is: "w9 st" }, { head: "unsent", is: "num w6" }, { head: "oldest", is: "num w6 c1" }, { head: "bytes", is: "num w7 c3" },
      { head: "arrived", is: "num w6 c4", title: "when jobs have arrived last" }, { head: "last error", is: "w16 c2" }],
    rows: lanes.map((lane) => ({ key: lane.name, cells: [name(lane.name), lane.state === "paused" ? pill("paused", "paused")
      : lane.error ? pill("warning", "fails") : pill("muted", lane.state), number(lane.waiting), briefly(lane.lag_ms), bytes(lane.bytes),
    lane.succeeded_at ? ago(lane.succeeded_at, now) : "–", name(lane.failure ?? "–")] })),
    nothing: empty("It has no lane") }))] : [];
}

/** @param {string} device @param {string} [look] */
const forgetButton = (device, look = "small") => actionButton("manage", "Forget…", () => forget(device), { class: look, "aria-label": `Forget ${device}` });

/** @param {string} device */
const forget = (device) => confirm({ title: `Forget ${device}`, button: "Forget it", zq: `zq devices forget ${quoted(device)}`, method: "DELETE",
  path: `devices/${encodeURIComponent(device)}`, say: "It is shown again when it reports. Another device may have its name. Its jobs and the numbers of its lanes stay.",
  done: () => `${device} is forgotten.` });

/** @param {Element} main @param {string} device */
function one(main, device) {
  const lanes = new Asked(async () => shown(await get(`devices/${encodeURIComponent(device)}`)));
  main.append(el("div", { class: "bar" }, el("div", { class: "crumb" }, el("a", { href: "#/devices" }, "Devices"),
    el("span", { class: "muted", "aria-hidden": "true" }, "/"), el("h1", { class: "cut", title: plain(device) }, plain(device) || "No name")),
  lanes.age, el("span", { class: "push" }, may("manage") && forgetButton(device, ""))), lanes.place);
  return { view: { topic: "pulse" }, draw: () => lanes.draw() };
}

/** @param {any} device */
function shown(device) {
  const now = serverNow();
  const queues = Object.entries(device.queues ?? {}).sort(([, one], [, other]) => other - one);
  const most = Math.max(...queues.map(([, jobs]) => jobs), 1);
  return [el("section", { class: "tiles five", "aria-label": "Now" },
    tile({ label: "Seen", value: long(now - device.seen_at), unit: "ago", bad: Boolean(device.faults?.includes("silent")), note: `reports every ${long(device.every_ms)}` }),
    tile({ label: "Unsent", value: number(device.jobs), unit: "jobs", note: bytes(device.bytes) }),
    tile({ label: "Oldest unsent", value: briefly(device.oldest_ms), warn: Boolean(device.faults?.includes("behind")), note: "when it reported" }),
    tile({ label: "Clock", value: clockOf(device).textContent ?? "", warn: Boolean(device.faults?.includes("clock")), note: "beside this server" }),
    tile({ label: "Runs for", value: long(now - device.since), note: `zq ${device.version}` })),
  card("Lanes", ["as it reported at ", time(device.reported_at)], table({ caption: `Lanes of ${device.name}`,
    columns: [{ head: "lane" }, { head: "state", is: "w9 st" }, { head: "unsent", is: "num w6" }, { head: "oldest", is: "num w6 c1" },
      { head: "bytes", is: "num w7 c3" }, { head: "last error", is: "w16 c2" }],
    rows: (device.lanes ?? []).map((/** @type {any} */ lane) => ({ key: lane.name, cells: [name(lane.name), lane.paused ? pill("paused", "paused")
      : lane.error ? pill("warning", "fails") : pill("muted", "sends"), number(lane.jobs), briefly(lane.oldest_ms), bytes(lane.bytes ?? 0), name(lane.error ?? "–")] })),
    nothing: empty("It has no lane") })),
  card("Unsent jobs by queue", "", table({ caption: `Unsent jobs of ${device.name}`, columns: [{ head: "queue" }, { head: "jobs", is: "num w6" }, { spoken: "share of the most" }],
    rows: queues.map(([queue, jobs]) => ({ key: queue, cells: [queueName(queue), number(jobs), meter(jobs, most, `${number(jobs)} of ${number(most)}`)] })),
    nothing: empty("All is sent") }))];
}
