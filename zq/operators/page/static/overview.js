// The Overview: figures, what is wrong beside why jobs failed, charts, and the queues that need somebody first.

import { ago, brief, el, fill, link, long, number, plain, rate, show, told } from "./dom.js";
import { ask, query } from "./net.js";
import { briefly, button, card, copied, empty, menu, name, pill, queueName, queuePlace, spark, table, tile } from "./parts.js";
import { lateButton, may, rights } from "./rights.js";

/** Of a finding: its word, and what helps against it for the first queue that it names. */
const KINDS = /** @type {Record<string, [string, (queue: string) => any[]]>} */ ({
  no_worker: ["No worker", (queue) => [to("Workers", queue, "workers"), why(queue)]],
  failing: ["Failing", (queue) => [step("Causes", queue, `failures${query({ queue })}`), pause(queue, false, `Pause: ${queue}`)]],
  growing: ["Growing", (queue) => [may("manage") && to("Set rate…", queue, "settings"), why(queue)]],
  old: ["Waits long", (queue) => [to("Workers", queue, "workers"), why(queue)]],
  stuck: ["Stuck", (queue) => [to("Workers", queue, "workers"), to("Jobs", queue, "jobs")]],
  budget: ["No budget", (queue) => [step("Budget", queue, "queues?tab=budgets"), why(queue)]],
  dead: ["Dead jobs", (queue) => [step("Jobs", queue, deadJobs(queue)), requeue({ status: "dead", queue }, `Requeue the dead jobs of ${queue}`)]],
  paused: ["Paused", (queue) => [pause(queue, true, `Resume: ${queue}`)]],
});
for (const code of ["lane_fails", "device_silent", "device_behind", "device_clock"]) KINDS[code] = ["Devices", () => [el("a", { class: "btn small", href: "#/devices" }, "Devices")]];
const SEVERITY = ["", "note", "warning", "alarm"];
const GONE_MS = 10_000;
const UNFOLDED_MS = 5000;
const SHOWN = 3;
const MOST_UNFOLDED = 50;
const MOST_CAUSES = 6;

/** The state of a queue: how bad it is, and its word. @type {Record<string, [string, string]>} */
export const STATES = { no_worker: ["alarm", "no worker"], failing: ["alarm", "failing"], growing: ["warning", "grows"], stuck: ["warning", "stuck"],
  budget: ["warning", "budget"], old: ["warning", "waits long"], paused: ["paused", "paused"] };

/** A place to look at, of one queue. @param {string} word @param {string} queue @param {string} place */
const step = (word, queue, place) => el("a", { class: "btn small", href: `#/${place}`, "aria-label": `${word}: ${queue}` }, word);
/** @param {string} word @param {string} queue @param {string} tab */
const to = (word, queue, tab) => step(word, queue, `${queuePlace(queue)}&tab=${tab}`);
const why = (/** @type {string} */ queue) => step("Why", queue, queuePlace(queue));
const deadJobs = (/** @type {string} */ queue) => `jobs${query({ f: `status:dead queue:${/\s/.test(queue) ? `"${queue}"` : queue}` })}`;

const actions = () => import("./actions.js");
const pause = (/** @type {string} */ queue, paused = false, label = `${paused ? "Resume" : "Pause"} ${queue}`) =>
  lateButton("manage", paused ? "Resume…" : "Pause…", () => import("./pausing.js"), (made) => made[paused ? "resume" : "pause"]([queue]), { class: "small", "aria-label": label });
/** @param {Record<string, string>} filter @param {string} label */
const requeue = (filter, label) => lateButton("manage", "Requeue…", actions, ({ sweep }) => sweep("requeue", filter, () => {}),
  { class: "small keep", "aria-label": label, "data-verb": "requeue" });

/** @param {number} share */
export const percent = (share) => `${rate(share * 100)} %`;

/** @param {any} tiles @param {any} doc @param {number} now @param {any[]} points */
function figures(tiles, doc, now, points) {
  const wrong = new Set((doc.findings ?? []).map((/** @type {any} */ finding) => finding.code));
  const { causes } = doc.pulse;
  const grows = tiles.growth > 0.05;
  const course = (/** @type {(point: any) => number | undefined} */ of) => points.map(of).filter((n) => n !== undefined);
  const done = course((point) => point.rates?.completed);
  const failed = course((point) => (point.completed + point.failed ? point.failed / (point.completed + point.failed) : 0));
  return el("section", { class: "tiles", "aria-label": "Now" }, [
    tile({ label: "Waiting", value: number(tiles.waiting), place: "jobs?f=status%3Aready", warn: grows && wrong.has("growing"),
      picture: tiles.line && spark(tiles.line, "Waiting jobs in the last hour"),
      note: tiles.growth === undefined ? "" : grows ? `+${rate(tiles.growth)}/s: ${tiles.drained_ms === undefined ? "never drained" : `drained in ${brief(tiles.drained_ms)}`}`
        : !tiles.waiting ? "nothing waits" : tiles.drained_ms === undefined ? "does not get less" : `drained in ${brief(tiles.drained_ms)}` }),
    tile({ label: "Oldest ready job", value: tiles.oldest && long(Math.max(now - tiles.oldest.since, 0)), note: tiles.oldest ? `in ${plain(tiles.oldest.queue)}` : doc.partial ? "" : "no job is ready",
      place: tiles.oldest && queuePlace(tiles.oldest.queue), warn: wrong.has("old") }),
    tile({ label: "Running", value: number(tiles.busy), unit: tiles.slots ? `of ${number(tiles.slots)} slots` : "", place: "workers", warn: tiles.silent > 0,
      note: tiles.workers ? `${number(tiles.workers)} ${tiles.workers === 1 ? "worker" : "workers"}${tiles.silent ? `, ${number(tiles.silent)} ${tiles.silent === 1 ? "is" : "are"} silent` : ""}` : "no worker is there" }),
    tile({ label: "Done", value: tiles.done === undefined ? undefined : rate(tiles.done), unit: "/s", note: tiles.arrived === undefined ? "" : `in ${rate(tiles.arrived)}/s, five minutes`,
      picture: done.length > 1 && spark(done, "Jobs done a second, over the range of the charts") }),
    tile({ label: "Failed", value: tiles.failed === undefined ? undefined : rate(tiles.failed * 100), unit: "%", place: "failures", bad: wrong.has("failing"),
      picture: failed.length > 1 && spark(failed, "Share of failed attempts, over the range of the charts", { hot: wrong.has("failing") }),
      note: tiles.failed_before === undefined ? "of five minutes" : `${percent(tiles.failed_before)} the hour before` }),
    tile({ label: "Dead", value: number(tiles.dead), place: "failures", bad: tiles.dead_per_minute > 0,
      note: [tiles.dead_per_minute > 0 && `${rate(tiles.dead_per_minute)} a minute`, causes > 0 && `${number(causes)} ${causes === 1 ? "cause" : "causes"} in 1 h`].filter(Boolean).join(", ") }),
  ]);
}

/** One kind of trouble. @param {any} finding @param {number} now @param {boolean} gone @param {Unfolded} unfold */
function findingLine({ code, severity, since, text, queues = [], more = 0 }, now, gone, unfold) {
  const [word, acts] = KINDS[code] ?? ["Server", () => [el("a", { class: "btn small", href: "#/health" }, "Health")]];
  const words = queues.length ? queues.map((/** @type {any} */ each, /** @type {number} */ at) => [at ? " · " : "", queueName(each.queue), " ", told(plain(each.text))]) : told(plain(text));
  return el("li", { "data-key": code, "data-code": code, class: `${SEVERITY[severity]}${gone ? " gone" : ""}` },
    el("span", { class: "kind" }, gone ? el("s", {}, word) : word, queues.length > 1 ? el("span", { class: "muted" }, ` ${number(queues.length + more)}`) : null),
    el("span", { class: "cut" }, words.flat(2), more > 0 && !gone && [" · ", unfold.button(code, more)]),
    since ? ago(since, now) : el("time"), el("span", { class: "acts" }, gone ? null : acts(queues[0]?.queue ?? "")),
    gone || more <= 0 ? null : unfold.list(code));
}

/** The queues of findings that do not fit into their lines: asked for when a line is unfolded, and with it as long as it is. */
class Unfolded {
  constructor() {
    this.open = /** @type {Map<string, any>} */ (new Map());
    /** What somebody wants to see, though the answer may not be there yet. */
    this.wanted = /** @type {Set<string>} */ (new Set());
    this.asked = 0;
    this.changed = () => {};
  }

  /** Ask again, if it is time for that. */
  tick() {
    if (!this.open.size || performance.now() - this.asked < UNFOLDED_MS) return;
    for (const code of this.open.keys()) this.ask(code).catch(() => undefined);
  }

  /** @param {string} code @param {number} more */
  button(code, more) {
    const open = this.open.has(code);
    const made = button(open ? "fewer" : `${number(more)} more`, () => {
      if (open) {
        this.open.delete(code);
        this.wanted.delete(code);
      } else {
        this.wanted.add(code);
        this.ask(code);
      }
      this.changed();
    }, { class: "ghost small", "aria-expanded": String(open), "data-verb": `${open ? "fewer" : "more"} ${code}` });
    return fill(made, el("span", { class: "spoken" }, ` of ${code.replace("_", " ")}`));
  }

  /** @param {string} code */
  async ask(code) {
    this.asked = performance.now();
    const { full } = await (await ask(`look${query({ topic: "findings", q: code, from: SHOWN, limit: MOST_UNFOLDED })}`)).json();
    // An answer that was under way unfolds nothing again.
    if (!this.wanted.has(code)) return;
    this.open.set(code, full);
    this.changed();
  }

  /** @param {string} code */
  list(code) {
    const found = this.open.get(code);
    if (!found) return null;
    const left = found.known - SHOWN - found.queues.length;
    return el("ul", { class: "unfolded" }, found.queues.map((/** @type {any} */ each) => el("li", { class: "cut", "data-key": each.queue }, queueName(each.queue), " ", told(plain(each.text)))),
      left > 0 && el("li", { "data-key": "left" }, link("queues?sort=worst", `and ${number(left)} more, on Queues`)));
  }
}

/** The findings, and for a while those that are gone: no button slips away under the pointer. */
class Findings {
  constructor() {
    this.seen = /** @type {Map<string, {finding: any, at: number}>} */ (new Map());
    this.unfold = new Unfolded();
  }

  /** @param {any[]} findings @param {number} now */
  draw(findings, now) {
    this.unfold.tick();
    const codes = new Set(findings.map(({ code }) => code));
    for (const [code, { at }] of this.seen) if (!codes.has(code) && now - at > GONE_MS) this.seen.delete(code);
    for (const finding of findings) this.seen.set(finding.code, { finding, at: now });
    const left = [...this.seen.values()].filter(({ finding }) => !codes.has(finding.code)).map(({ finding }) => findingLine(finding, now, true, this.unfold));
    return el("ul", { class: "findings" }, findings.map((finding) => findingLine(finding, now, false, this.unfold)), left);
  }
}

/** Why attempts failed in the last 60 minutes. @param {any[]} causes @param {number} all */
const causesCard = (causes, all) => card("Why jobs failed, last 60 minutes", null, table({ caption: "Causes of failures in the last 60 minutes, the most frequent first", noheads: true,
  columns: [{ spoken: "cause" }, { spoken: "by 5 minutes", is: "w7 c1" }, { spoken: "count", is: "num w4" }, { spoken: "actions", is: "do wact" }],
  rows: causes.slice(0, MOST_CAUSES).map((cause) => ({ key: cause.id, cells: [name(cause.message || cause.id, `failures${query({ cause: cause.id })}`),
    spark(cause.bars, `${number(cause.count)} in the last hour`, { bars: true, hot: cause.is_new || cause.times >= 2 }), number(cause.count),
    cause.dead ? requeue({ status: "dead", error: cause.id }, `Requeue the dead jobs of ${plain(cause.message || cause.id)}`) : null] })),
  nothing: el("p", { class: "empty" }, "No attempt has failed.") }), all > 0 && link("failures", all === 1 ? "All 1 cause" : `All ${number(all)} causes`));

/** What is told of a queue in a row, as columns for `table`. */
export const COLUMNS = [
  { head: "queue", is: "wname", sort: "name" }, { head: "state", is: "w7 st", sort: "worst" }, { head: "waiting", is: "num w6", sort: "waiting" }, { head: "oldest", is: "num w5" },
  { head: "in/s", is: "num w5 c2" }, { head: "done/s", is: "num w5 c2" }, { head: "failed", is: "num w5 c3", sort: "failing" },
  { head: "wait p95", is: "num w5 c4", title: "95 % of the jobs of five minutes waited at most so long" }, { head: "running", is: "num w5 c4" },
  { head: "dead", is: "num w5 c3" }, { head: "workers", is: "num w5 c4" }, { head: "waiting, 1 h", is: "w7 c4" }, { spoken: "actions", is: "do wdo" },
];

/** What a queue does, and what it needs, as the cells of its row after its name. @param {string} queue @param {any} row @param {number} now */
export function queueCells(queue, row, now) {
  const counts = row.counts ?? {};
  const [look, word] = STATES[row.state] ?? ["muted", "ok"];
  return [el("span", { title: row.state_text ? plain(row.state_text) : null }, pill(look, word)), number(counts.ready), row.since ? ago(row.since, now) : "–",
    row.arrived === undefined ? "–" : rate(row.arrived), row.done === undefined ? "–" : rate(row.done),
    row.failed_share === undefined ? "–" : el("span", { class: row.state === "failing" ? "bad" : null }, percent(row.failed_share)), briefly(row.wait_p95_ms),
    [number(counts.in_flight), row.slots !== undefined && el("span", { class: "muted" }, ` / ${number(row.slots)}`)],
    counts.dead ? link(deadJobs(queue), number(counts.dead)) : el("span", { class: "muted" }, "0"),
    el("span", { class: row.state === "no_worker" ? "bad" : null }, number(row.workers)),
    row.line ? spark(row.line, `Waiting in the last hour: at most ${number(Math.max(...row.line))}`) : "–"];
}

/** The verb that helps a queue, and the others behind ⋯. @param {string} queue @param {any} row */
export const queueActs = (queue, row) => [pause(queue, Boolean(row.paused)), " ", ...menu(`More for ${plain(queue)}`, [["Jobs", `${queuePlace(queue)}&tab=jobs`],
  ["Workers", `${queuePlace(queue)}&tab=workers`], ["Settings", `${queuePlace(queue)}&tab=settings`], may("enqueue") && ["Enqueue…", `${queuePlace(queue)}&tab=enqueue`]])];

/** @param {any} doc @param {number} now @param {(place: string) => void} go */
const queuesCard = (doc, now, go) => card("Queues", `${number(doc.known_queues)}, those that need somebody first`, table({ caption: "Queues, those that need somebody first",
  columns: COLUMNS, sorted: "-worst", sort: (by) => go(`queues${query({ sort: by.replace("-", "") })}`),
  rows: (doc.order ?? []).filter((/** @type {string} */ each) => doc.queues[each]).map((/** @type {string} */ each) =>
    ({ key: each, cells: [queueName(each), ...queueCells(each, doc.queues[each], now), queueActs(each, doc.queues[each])] })),
  nothing: empty("No queue has jobs") }), link("queues", "All queues, as a tree, in bulk"));

/** Three commands from nothing to a job that is done. */
function firstSteps() {
  const url = rights.url || "http://127.0.0.1:7890";
  const json = "-H 'Content-Type: application/json'";
  const steps = [
    ["Store a job", "A queue, a type and any JSON. The answer comes once the job is on the disk.", `curl -s ${url}/jobs ${json} -d '{"queue": "mail", "type": "welcome", "payload": {"to": "ann@example.org"}}'`],
    ["Take it", "The stream stays open and prints each job. A program that does so is a worker.", `curl -sN '${url}/jobs/take?queue=mail&prefetch=10'`],
    ["Say that it is done", "Put in the id that the stream has printed. Workers of the library do this for you.", `curl -si ${url}/jobs/success ${json} -d '{"ids": ["ID"]}'`],
  ];
  return card("Nothing has happened yet", null, [el("ol", { class: "first" }, steps.map(([title, text, line]) => el("li", {}, el("h2", {}, title), el("p", { class: "muted" }, text),
    el("pre", { class: "code", role: "group", tabindex: "0", "aria-label": `Command: ${title}` }, line), el("p", {}, button(`Copy: ${title}`, () => copied(line, "The command is copied."), { class: "small" }))))),
  el("p", { class: "foot" }, "This page turns into the overview by itself when the first job comes.")], "waiting for the first job");
}

/** @param {Element} main @param {URLSearchParams} _values @param {(place: string) => void} go */
export function overview(main, _values, go) {
  const [note, top, wrong, last] = [el("span", { class: "muted wide-only" }), el("div"), el("div"), el("div")];
  const [ranges, marks, charts] = [el("div"), el("span", { class: "push" }), el("div")];
  main.append(el("div", { class: "bar" }, el("h1", {}, "Overview"), note, marks, ranges), top, wrong, charts, last);
  const findings = new Findings();
  let history = /** @type {import("./chart.js").History | null} */ (null);
  let asked = false;
  /** Charts come after the first numbers. */
  const learn = async () => {
    if (!history) {
      const { History, markButton } = await import("./chart.js");
      history = new History();
      charts.append(history.place);
      ranges.append(history.ranges);
      marks.append(markButton(() => history?.refresh()) ?? "");
    }
    history.learn();
  };
  let drawn = /** @type {[any, number] | null} */ (null);
  const draw = (/** @type {any} */ doc, /** @type {number} */ at, all = true) => {
    drawn = [doc, at];
    const { totals, findings: many, causes } = doc.pulse;
    const begins = !doc.known_queues && !Object.values(totals).some(Boolean);
    show(note, `${number(doc.known_queues)} ${doc.known_queues === 1 ? "queue" : "queues"}, ${doc.partial ? "which are being looked at" : many ? `${number(many)} findings` : "nothing is wrong"}`,
      (doc.sweeps ?? []).map((/** @type {any} */ sweep) => [" · ", link("activity", `${sweep.verb}: ${number(sweep.changed)}${sweep.counted ? ` of ${number(sweep.counted)}` : ""}`)]).flat());
    show(top, doc.tiles && figures(doc.tiles, doc, at, history?.course?.points.slice(0, -1) ?? []));
    if (!all || doc.partial) return;
    show(wrong, begins ? firstSteps() : el("div", { class: doc.causes ? "two wide-left" : "" },
      card("What is wrong", doc.findings.length ? "the worst first" : null, doc.findings.length || findings.seen.size ? findings.draw(doc.findings, at) : el("p", { class: "empty" }, "Nothing is wrong.")),
      doc.causes && causesCard(doc.causes, causes ?? doc.causes.length)));
    show(last, begins ? null : queuesCard(doc, at, go));
    charts.hidden = begins;
    if (!begins && (history || !asked)) {
      asked = true;
      setTimeout(learn);
    }
  };
  findings.unfold.changed = () => drawn && draw(...drawn);
  return { view: { topic: "overview" }, draw };
}
