// Jobs: the filter line, the list that it finds, what is ticked in it, and the job that is open beside it.

import { countsBy, exactly, filterButtons, lookAhead, many, may, rowActions } from "./actions.js";
import { ago, brief, el, link, local, number, plain, show } from "./dom.js";
import { Misread, STATUSES, lineOf, parseFilter, suggestions, valueOf, withTerm } from "./filter.js";
import { JobView } from "./job.js";
import { get, getText, query, serverNow } from "./net.js";
import { banner, button, chip, dialog, empty, name, pill, queueName, selection, short, shortId, skeleton, table } from "./parts.js";
import { members, rawField } from "./raw.js";

/** @typedef {import("./dom.js").Child} Child */
/** A row: the job, and the beginning of its payload as it is stored. @typedef {{job: any, payload: string, gone?: boolean}} Row */

const PAGE = 50;
const MOST_NEW = 100;
const SEARCH_MS = 1000;
const AGAIN_MS = 1500;
const COUNT_MS = 5000;
const LOOK_MS = 30_000;
const PAYLOAD_LETTERS = 160;
const DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** When a job was stored: its id says so. @param {string} id */
const bornAt = (id) => [...id.slice(0, 10)].reduce((ms, digit) => ms * 32 + DIGITS.indexOf(digit), 0);

/** Since when a job is what it is, and how the age is called. @type {Record<string, [string, string]>} */
const SINCE = { dead: ["failed_at", "died"], ready: ["ready_at", "waits"], scheduled: ["ready_at", "due"], in_flight: ["dequeued_at", "runs"],
  completed: ["completed_at", "done"], cancelled: ["cancelled_at", "cancelled"], expired: ["failed_at", "expired"] };

/** @param {any} job */
const sinceOf = (job) => job[SINCE[job.status]?.[0]] ?? job.created_at;

/** @param {any} job @param {number} now */
const age = (job, now) => (job.status === "scheduled" && job.ready_at > now
  ? el("time", { datetime: new Date(job.ready_at).toISOString(), "data-age": "" }, `in ${brief(job.ready_at - now)}`) : ago(sinceOf(job), now));

/** A list of jobs that stays as it is until somebody asks for another: its rows are asked for again, and those that come are counted. */
export class JobList {
  /** @param {Element} place
   * @param {{filter: Record<string, string>, at: (values: Record<string, string | undefined>) => string, from?: string, order?: string, sort?: string, page?: number,
   *   turn: (values: Record<string, any>) => void}} of `at` is the address of the list with other values; `turn` goes there. */
  constructor(place, { filter, at, turn, from = "", order = "desc", sort = "", page = 1 }) {
    /** Its own, so that an answer that comes when another list is in the place changes nothing. */
    this.place = el("div", {}, skeleton(8, 5));
    this.filter = filter;
    this.at = at;
    this.turn = turn;
    this.from = from;
    this.order = order;
    this.sort = sort;
    this.page = page;
    this.totals = /** @type {Record<string, number>} */ ({});
    this.now = serverNow();
    this.open = "";
    this.rows = /** @type {Row[]} */ ([]);
    this.next = "";
    this.searched = "";
    this.fresh = "";
    this.error = "";
    this.loaded = false;
    /** Of which question for rows, and for their number, the answer counts; and for how many somebody waits. */
    this.listing = 0;
    this.counting = 0;
    this.awaited = 0;
    this.busy = false;
    this.asked = -Infinity;
    this.counted = -Infinity;
    this.looked = -Infinity;
    this.seen = /** @type {import("./actions.js").Seen | null} */ (null);
    this.ticked = /** @type {Map<string, string>} */ (new Map());
    this.all = /** @type {import("./actions.js").Seen | null} */ (null);
    this.anchor = "";
    place.replaceChildren(this.place);
    this.wait(this.load(), this.count());
  }

  /** Say that the list is not complete until these have come: what may be done with all jobs depends on how many there are.
   * @param {...Promise<void>} parts */
  async wait(...parts) {
    this.awaited += 1;
    this.place.setAttribute("aria-busy", "true");
    await Promise.all(parts);
    this.awaited -= 1;
    if (!this.awaited) this.place.removeAttribute("aria-busy");
  }

  /** Filters that the server has to look through jobs for are not counted by themselves again. */
  get isCheap() {
    return Object.keys(this.filter).every((each) => ["queue", "status"].includes(each));
  }

  /** @param {string} from @param {Row[]} [before] What a search has found so far. */
  async load(from = this.from, before = []) {
    const mine = this.listing += 1;
    this.busy = true;
    try {
      const text = await getText(`jobs${query({ ...this.filter, order: this.order, limit: PAGE - before.length, from, last_error: true,
        search_ms: this.filter.filter || this.filter.search ? SEARCH_MS : "" })}`);
      if (mine !== this.listing) return;
      const { rows, pages, searched_to } = read(text);
      this.rows = [...before, ...rows];
      this.next = pages.next ? new URL(pages.next, "http://x").searchParams.get("from") ?? "" : "";
      this.searched = searched_to ?? "";
      this.newest = this.order === "desc" && !from && !before.length ? rows[0]?.job.id ?? "" : this.newest;
      this.fresh = "";
      this.error = "";
    } catch (error) {
      if (mine !== this.listing) return;
      this.error = /** @type {Error} */ (error).message;
    }
    this.loaded = true;
    this.busy = false;
    this.asked = performance.now();
    this.draw();
  }

  /** How many match, and how many of each status and queue. The server remembers few looks ahead: it is asked for one when it helps. */
  async count() {
    const mine = this.counting += 1;
    const old = performance.now() - this.looked;
    this.counted = performance.now();
    if (!Object.keys(this.filter).length) return;
    try {
      const isSame = this.seen && old < LOOK_MS && (await get(`jobs/count${query(this.filter)}`)).count === this.seen.count;
      const seen = isSame ? this.seen : await lookAhead("delete", this.filter);
      if (mine !== this.counting) return;
      if (!isSame) this.looked = this.counted;
      this.seen = seen;
      this.countedAt = this.now;
    } catch {
      // The list says what is wrong.
    }
    if (this.loaded) this.draw();
  }

  /** Everything anew: somebody has changed something here. */
  again() {
    this.ticked.clear();
    this.all = null;
    this.looked = -Infinity;
    this.wait(this.load(), this.count());
  }

  /** A frame has come. @param {number} at By the server's clock. @param {Record<string, number>} [totals] Of the whole server. */
  tick(at, totals = {}) {
    this.now = at;
    this.totals = totals;
    if (!this.place.isConnected || !this.loaded) return;
    const old = performance.now();
    if (!this.busy && old - this.asked >= AGAIN_MS) {
      if (this.error && this.isCheap) this.load();
      else this.refresh();
    }
    if (this.isCheap && old - this.counted >= COUNT_MS) this.count();
    this.draw();
  }

  /** The rows as they are now, in their places, and how many have come. */
  async refresh() {
    const mine = this.listing;
    this.busy = true;
    this.asked = performance.now();
    const ids = this.rows.map(({ job }) => job.id);
    try {
      if (this.newest !== undefined && this.order === "desc" && !this.from && this.isCheap) {
        const { jobs } = await get(`jobs${query({ ...this.filter, order: "asc", limit: MOST_NEW, from: this.newest })}`);
        // Nobody waits for the rows of a list that was left.
        if (mine !== this.listing || !this.place.isConnected) return;
        this.fresh = jobs.length ? `+${jobs.length < MOST_NEW ? jobs.length : `${MOST_NEW} or more`} new` : "";
      }
      if (ids.length) {
        const { rows } = read(await getText(`jobs${query({ id: ids.join(","), limit: ids.length, last_error: true })}`));
        if (mine !== this.listing) return;
        const now = new Map(rows.map((row) => [row.job.id, row]));
        this.rows = this.rows.map((row) => now.get(row.job.id) ?? { ...row, gone: true });
        for (const { job } of this.rows) if (this.ticked.has(job.id)) this.ticked.set(job.id, job.status);
      }
    } catch {
      // The head says that the server is silent.
      if (mine !== this.listing) return;
    }
    this.busy = false;
    this.draw();
  }

  /** The page before this one. What the browser has seen before may be anything else. */
  async newer() {
    let from = "";
    try {
      if (this.page > 2 && this.rows.length) {
        const { rows } = read(await getText(`jobs${query({ ...this.filter, order: this.order === "desc" ? "asc" : "desc", limit: PAGE + 1, from: this.rows[0].job.id })}`));
        from = rows[PAGE]?.job.id ?? "";
      }
      this.turn(from ? { from, page: this.page - 1 } : { from: "", page: "" });
    } catch (error) {
      this.error = /** @type {Error} */ (error).message;
      this.draw();
    }
  }

  // What is ticked

  /** @param {string} id @param {boolean} on @param {boolean} [upTo] From the one that was ticked before, up to this one. */
  tick1(id, on, upTo) {
    this.all = null;
    const ids = this.rows.map(({ job }) => job.id);
    const [one, other] = [ids.indexOf(upTo && ids.includes(this.anchor) ? this.anchor : id), ids.indexOf(id)];
    for (const { job } of this.rows.slice(Math.min(one, other), Math.max(one, other) + 1)) {
      if (on) this.ticked.set(job.id, job.status);
      else this.ticked.delete(job.id);
    }
    this.anchor = id;
    this.draw();
  }

  /** @param {boolean} on */
  tickPage(on) {
    this.all = null;
    for (const { job } of this.rows) {
      if (on) this.ticked.set(job.id, job.status);
      else this.ticked.delete(job.id);
    }
    this.draw();
  }

  clear() {
    this.ticked.clear();
    this.all = null;
    this.draw();
  }

  // What is shown

  draw() {
    const before = this.rows.length;
    show(this.place, el("section", { class: "card", "aria-label": "Jobs that match" }, this.head(),
      // Banners have keys. Beside one, what comes without a key, such as the bar, would wait for the row under the pointer to be left.
      el("div", {}, this.error ? banner("This list cannot be shown.", this.error, { failed: true, inner: true, button: button("Try again", () => this.wait(this.load()), { class: "small" }) }) : null),
      el("div", {}, before || !this.error ? this.table() : null),
      el("div", {}, this.searched ? banner(`Searched back to ${local(bornAt(this.searched))}.`, `${number(before)} found.`, { key: "searched", inner: true,
        button: button("Search on", () => this.wait(this.load(this.next, this.rows)), { class: "small" }) }) : null),
      this.foot(), this.bar()));
    for (const box of this.place.querySelectorAll("input[data-stay]")) {
      const id = box.getAttribute("value") ?? "";
      /** @type {any} */ (box).checked = this.all || (id ? this.ticked.has(id) : before > 0 && this.rows.every(({ job }) => this.ticked.has(job.id)));
    }
  }

  head() {
    const sum = Object.values(this.totals).reduce((all, n) => all + n, 0);
    const hasAny = Object.keys(this.filter).length > 0;
    const counted = hasAny ? this.seen && many(this.seen) : number(sum);
    const old = this.now - (this.countedAt ?? this.now);
    return el("header", {}, el("span", {}, el("b", {}, counted ?? "–"), el("span", { class: "muted" }, ` ${counted === "1" ? "job matches" : hasAny ? "jobs match" : "jobs"}${
      hasAny && this.seen ? `, counted ${old < 1500 ? "just now" : `${brief(old)} ago`}` : ""}`)),
    el("span", { class: "push acts" }, this.fresh ? button(this.fresh, () => (this.page > 1 ? this.turn({ from: "", page: "" }) : this.again()), { class: "small", "data-verb": "new" }) : null,
      hasAny && !this.isCheap ? button("Count again", () => {
        this.looked = -Infinity;
        this.wait(this.count());
      }, { class: "small ghost" }) : null,
      this.all ? null : el("span", { class: "acts wide-only" }, hasAny ? filterButtons(this.counts(), this.filter, () => this.again(), { all: true, small: true, partly: isPart(this.seen) }) : null)));
  }

  /** How many of each status match. @returns {[string, number][]} */
  counts(seen = this.seen) {
    if (!seen) return [];
    return seen.by ? countsBy(seen, "status") : [[this.filter.status ?? "", seen.count]];
  }

  table() {
    const { filter, now } = this;
    const one = (/** @type {string} */ field) => Boolean(filter[field] && !filter[field].includes(","));
    const mayTick = may("manage");
    const again = () => this.again();
    const columns = [
      mayTick && { head: el("input", { type: "checkbox", "data-stay": "page", "aria-label": `Select the ${this.rows.length} of this page`, onchange: (/** @type {any} */ event) => this.tickPage(event.target.checked) }), is: "tick" },
      { head: one("status") ? SINCE[filter.status]?.[1] ?? "age" : "age", is: "num w5", sort: "age", title: "Since it died, became ready, was delivered or finished. The order is that in which jobs were stored." },
      { head: "type", is: "w9", sort: "type", names: true },
      !one("status") && { head: "status", is: "w7 st", sort: "status" },
      !one("queue") && { head: "queue", is: "w8 c3", sort: "queue" },
      { head: "last error", is: "c1" }, { head: "payload", is: "c2" }, { head: "tries", is: "num w5 c3", sort: "attempts", title: "Attempts that have failed" },
      { head: "id", is: "w9 c4" }, { spoken: "actions", is: "do wdo" }].filter((each) => each !== false);
    const rows = this.sorted().map(({ job, payload, gone }) => ({ key: job.id, here: job.id === this.open, ...mayTick && { selected: Boolean(this.all) || this.ticked.has(job.id) }, cells: [
      mayTick && el("input", { type: "checkbox", value: job.id, "data-stay": job.id, "aria-label": `Select ${short(job.id)}`,
        onclick: (/** @type {any} */ event) => this.tick1(job.id, event.target.checked, event.shiftKey) }),
      age(job, now), name(job.type, this.at({ job: job.id })), !one("status") && (gone ? pill("cancelled", "gone") : pill(job.status)),
      !one("queue") && queueName(job.queue), job.last_error ? name(job.last_error.message) : el("span", { class: "muted" }, "–"),
      el("span", { class: "cut mono muted" }, payload), number(job.attempts), shortId(job.id, this.at({ job: job.id })),
      gone ? "" : rowActions(job, again)].filter((each) => each !== false) }));
    return table({ caption: `Jobs, the ${this.order === "desc" ? "newest" : "oldest"} first`, columns, rows, sorted: this.sort || (this.order === "desc" ? "age" : "-age"),
      sort: (by) => this.turn(by.endsWith("age") ? { sort: "", from: "", page: "", order: by === "-age" ? "asc" : "" } : { sort: by }),
      nothing: this.searched || rows.length ? null : this.nothing() });
  }

  /** The rows of this page in the order of a heading. */
  sorted() {
    const by = this.sort.replace("-", "");
    if (!by) return this.rows;
    const sign = this.sort.startsWith("-") ? -1 : 1;
    return [...this.rows].sort((one, other) => sign * (one.job[by] < other.job[by] ? -1 : one.job[by] > other.job[by] ? 1 : 0));
  }

  nothing() {
    const place = el("span", {});
    const { queue } = this.filter;
    if (queue && !queue.includes(",")) {
      get(`queues/${encodeURIComponent(queue)}/near`).then(({ known, near }) => {
        if (known || !near.length) return;
        place.append(`There is no queue “${plain(queue)}”. Did you mean `, ...near.flatMap((/** @type {string} */ each, /** @type {number} */ at) =>
          [at ? ", " : "", link(`jobs${query({ f: lineOf({ ...this.filter, queue: each }) })}`, each)]), "?");
      }, () => undefined);
    }
    return el("div", { "data-stay": JSON.stringify(this.filter) }, empty("No job matches", place));
  }

  foot() {
    const first = (this.page - 1) * PAGE + 1;
    const order = `the ${this.order === "desc" ? "newest" : "oldest"} first${this.sort && this.rows.length ? `; only the ${number(this.rows.length)} shown are sorted by ${this.sort.replace("-", "").replace("attempts", "tries")}` : ""}`;
    return el("div", { class: "foot" }, el("span", {}, this.rows.length ? `${number(first)}–${number(first + this.rows.length - 1)}${this.seen ? ` of ${many(this.seen)}` : ""}, ${order}` : ""),
      el("span", { class: "push acts" }, button("Newer", () => this.newer(), { class: "small", disabled: this.page < 2, title: this.page < 2 ? "This is the first page" : null }),
        button("Older", () => this.turn({ from: this.next, page: this.page + 1 }), { class: "small", disabled: !this.next || Boolean(this.searched), title: this.next ? null : "This is the last page" })));
  }

  bar() {
    if (!this.ticked.size && !this.all) return null;
    const again = () => this.again();
    if (this.all) {
      return selection(`All ${many(this.all)} that match, up to ${short(this.all.upto)}`, filterButtons(this.counts(this.all), { ...this.filter, upto: this.all.upto }, again, { all: isPart(this.all), partly: isPart(this.all) }), () => this.clear());
    }
    const counts = /** @type {Map<string, number>} */ (new Map());
    for (const status of this.ticked.values()) counts.set(status, (counts.get(status) ?? 0) + 1);
    const n = this.ticked.size;
    const others = this.seen && (!this.seen.exact || this.seen.count > n) ? many(this.seen) : "";
    return selection(`${number(n)} selected${others ? ` of ${others}` : ""}`, filterButtons([...counts], { id: [...this.ticked.keys()].join(",") }, again), () => this.clear(),
      others ? button(`Select all ${others} that match`, () => {
        this.all = this.seen;
        this.draw();
      }, { class: "ghost", "data-verb": "all" }) : null);
  }
}

/** Whether there may be more of each status than was counted. @param {import("./actions.js").Seen | null} seen */
const isPart = (seen) => Boolean(seen && (!seen.exact || seen.more));

/** The rows of an answer, with their payloads as they are stored. @param {string} text @returns {{rows: Row[], pages: any, searched_to?: string}} */
function read(text) {
  const { jobs: found, pages, searched_to } = JSON.parse(text);
  const rows = /** @type {Row[]} */ ([]);
  for (const [, each] of members(rawField(text, "jobs") ?? "[]")) {
    const payload = (rawField(each, "payload") ?? "").slice(0, PAYLOAD_LETTERS).replace(/\s+/g, " ");
    rows.push({ job: found[rows.length], payload: plain(payload) });
  }
  return { rows, pages, searched_to };
}

/** A list in a part of another page: its jobs open on the page Jobs. @param {Element} place @param {Record<string, string>} filter @param {() => void} [again] */
export function jobsPanel(place, filter, again = () => undefined) {
  exactly(filter);
  const begin = (/** @type {Record<string, any>} */ values = {}) => new JobList(place, { filter, ...values, page: Number(values.page) || 1,
    at: (more) => `jobs${query({ f: lineOf(filter), ...more })}`, turn: (more) => {
      list = begin({ ...values, ...more });
      again();
    } });
  let list = begin();
  return { check: (/** @type {number} */ at = serverNow()) => list.tick(at) };
}

/** @param {Element} main @param {URLSearchParams} values @param {(place: string) => void} go */
export function jobs(main, values, go) {
  const line = values.get("f") ?? "";
  const wrong = el("p", { id: "wrong", class: "error bad", role: "alert", hidden: true });
  const chips = el("div", { class: "chips", role: "group", "aria-label": "Status" });
  const place = el("div");
  const split = el("div", {}, place);
  const field = filterField(line, (typed) => go(`jobs${query({ f: typed })}`), wrong);
  main.append(el("div", { class: "bar" }, el("h1", {}, "Jobs"), field, button("Saved views", () => views(line, go))), wrong, chips, split);
  const at = (/** @type {Record<string, any>} */ more) => `jobs${query({ ...Object.fromEntries(values), ...more })}`;
  let list = /** @type {JobList | null} */ (null);
  let view = /** @type {JobView | null} */ (null);
  let filter = /** @type {Record<string, string> | null} */ (null);
  try {
    filter = parseFilter(line, serverNow());
  } catch (error) {
    misread(wrong, field, line, error);
    place.append(el("section", { class: "card" }, empty("Nothing is listed", "The filter line cannot be read as it stands, so it means no job. Mend what is marked above.")));
  }

  const begin = () => {
    if (!filter) return;
    list = new JobList(place, { filter, at, turn: (more) => go(at(more)), from: values.get("from") ?? "", order: values.get("order") === "asc" ? "asc" : "desc",
      sort: values.get("sort") ?? "", page: Number(values.get("page")) || 1 });
  };
  /** Open the job that the address names beside the list, or close it. */
  const open = () => {
    const id = values.get("job") ?? "";
    if (list) list.open = id;
    if (view?.id !== id) {
      view?.place.remove();
      view = id ? new JobView(id, { close: () => go(at({ job: "" })), step, changed: () => list?.refresh() }) : null;
      if (view) split.append(view.place);
    }
    split.className = view ? "split" : "";
    if (list?.loaded) list.draw();
  };
  const step = (/** @type {number} */ by) => {
    const ids = list?.sorted().map(({ job }) => job.id) ?? [];
    const to = ids[ids.indexOf(view?.id) + by];
    if (to) location.replace(`#/${at({ job: to })}`);
  };
  begin();
  open();
  return {
    view: { topic: "pulse" },
    turn: (/** @type {URLSearchParams} */ next) => {
      if ((next.get("f") ?? "") !== line || next.has("at")) return false;
      const same = ["from", "order", "sort", "page"].every((each) => (next.get(each) ?? "") === (values.get(each) ?? ""));
      values = next;
      if (!same) begin();
      open();
      return true;
    },
    draw: (/** @type {any} */ doc, /** @type {number} */ at) => {
      const { totals } = doc.pulse;
      show(chips, STATUSES.map((status) => chip([pill(status), " ", el("b", {}, number(totals[status]))], pressed(line, status),
        () => go(`jobs${query({ f: turned(line, status) })}`), { "data-verb": status, ...!filter && { disabled: true, title: "Mend the filter line first" } })));
      list?.tick(at, totals);
      view?.tick(at);
    },
  };
}

/** @param {string} line @param {string} status */
const pressed = (line, status) => {
  try {
    return valueOf(line, "status").split(",").includes(status);
  } catch {
    return false;
  }
};

/** The line with a status more or less. @param {string} line @param {string} status */
function turned(line, status) {
  const now = valueOf(line, "status").split(",").filter(Boolean);
  return withTerm(line, "status", (now.includes(status) ? now.filter((each) => each !== status) : [...now, status]).join(","));
}

/** The line, which goes on with what there is. @param {string} line @param {(typed: string) => void} find @param {HTMLElement} wrong */
function filterField(line, find, wrong) {
  const words = el("datalist", { id: "words" });
  let asked = "";
  const suggest = async (/** @type {string} */ typed) => {
    asked = typed;
    const found = await suggestions(typed);
    if (asked === typed) words.replaceChildren(...found.map((each) => el("option", { value: each.line, label: each.label })));
  };
  const box = el("input", { type: "text", id: "filter", name: "f", value: line, list: "words", "aria-label": "Filter", "aria-describedby": "wrong", "data-verb": "filter",
    placeholder: "status:dead queue:mail age:>1h payload.user:7, or words of types, errors and payloads", autocomplete: "off", spellcheck: "false",
    oninput: () => {
      unmark(wrong, box);
      suggest(box.value);
    }, onfocus: () => suggest(box.value) });
  return el("form", { class: "filter", role: "search", onsubmit: (/** @type {Event} */ event) => {
    event.preventDefault();
    try {
      parseFilter(box.value, serverNow());
      find(box.value.trim());
    } catch (error) {
      misread(wrong, box.form, box.value, error);
      if (error instanceof Misread) box.setSelectionRange(error.from, error.to);
    }
  } }, box, words);
}

/** Say beside the field what is wrong, and mark its place. @param {HTMLElement} wrong @param {any} form @param {string} line @param {unknown} error */
function misread(wrong, form, line, error) {
  if (!(error instanceof Misread)) throw error;
  form.querySelector("input").setAttribute("aria-invalid", "true");
  wrong.hidden = false;
  wrong.replaceChildren(el("code", {}, plain(line.slice(0, error.from)), el("mark", {}, plain(line.slice(error.from, error.to)) || " "), plain(line.slice(error.to))), ` ${error.message}`);
}

/** @param {HTMLElement} wrong @param {Element} box */
function unmark(wrong, box) {
  wrong.hidden = true;
  wrong.replaceChildren();
  box.removeAttribute("aria-invalid");
}

/** Views that this browser keeps. A view is an address, so it can be sent to others too. @param {string} line @param {(place: string) => void} go */
function views(line, go) {
  const saved = /** @type {Record<string, string>} */ (JSON.parse(localStorage.getItem("views") ?? "{}"));
  const keep = () => localStorage.setItem("views", JSON.stringify(saved));
  const title = el("input", { name: "view", autocomplete: "off" });
  const list = el("ul", { class: "sheet" });
  const draw = () => show(list, Object.entries(saved).map(([each, f]) => el("li", { class: "bar", "data-key": each },
    el("a", { href: `#/jobs${query({ f })}`, onclick: () => box.close() }, each), el("code", { class: "muted" }, f),
    button("×", () => {
      delete saved[each];
      keep();
      draw();
    }, { class: "ghost small push", "aria-label": `Forget ${each}` }))));
  draw();
  const box = dialog({ title: "Saved views", keep: "Close", buttons: [button("Save", () => undefined, { type: "submit", class: "solid" })],
    parts: [el("div", { class: "part" }, list), el("div", { class: "part stack fields" }, el("label", { class: "field" }, el("span", {}, "Name of this view"), title))],
    act: () => {
      if (!title.value.trim()) {
        box.refuse("A view needs a name.");
        return;
      }
      saved[title.value.trim()] = line;
      keep();
      box.close();
      go(`jobs${query({ f: line })}`);
    } });
}
