// Queues: all of them in an order or as a tree, the types of all jobs, the budgets, and the producers.

import { may, rights } from "./actions.js";
import { Asked } from "./asked.js";
import { ago, el, number, plain, show } from "./dom.js";
import { spanned } from "./fields.js";
import { lineOf } from "./filter.js";
import { get, query, serverNow } from "./net.js";
import { empty, meter, name, pill, queueName, segment, selection, table, tabs } from "./parts.js";
import { pauseMany } from "./pausing.js";
import { COLUMNS, queueActs, queueCells } from "./overview.js";
import { producers } from "./producers.js";
import { TypesTable } from "./types.js";

const PAGE = 50;
const NAMES = /** @type {[string, string][]} */ ([["queues", "Queues"], ["types", "By type"], ["budgets", "Budgets"], ["producers", "Producers"]]);

/** @param {Element} main @param {URLSearchParams} values @param {(place: string) => void} go */
export function queues(main, values, go) {
  const tab = values.get("tab") ?? "queues";
  const bar = el("div", { class: "bar" }, el("h1", {}, "Queues"));
  const body = el("section", { class: "card", "aria-label": "Queues" },
    tabs("Parts of the queues", NAMES.filter(([each]) => each !== "producers" || !rights.queues.length), tab, (to) => `queues${query({ tab: to === "queues" ? "" : to })}`));
  main.append(bar, body);
  if (tab === "types") {
    const types = new TypesTable();
    body.append(types.place);
    return { view: { topic: "pulse" }, draw: () => types.draw() };
  }
  if (tab === "budgets") {
    const asked = new Asked(budgetTable);
    body.append(asked.place, el("div", { class: "foot" }, asked.age));
    return { view: { topic: "pulse" }, draw: () => asked.draw() };
  }
  if (tab === "producers") return producers(body);
  return allQueues(body, bar, values, go);
}

/** @param {Element} card @param {Element} bar @param {URLSearchParams} values @param {(place: string) => void} go */
function allQueues(card, bar, values, go) {
  const q = values.get("q") ?? "";
  const sort = values.get("sort") ?? "worst";
  const from = Number(values.get("from") ?? 0);
  const tree = values.get("tree") ?? "";
  const under = tree && (values.get("under") ?? "");
  const body = el("div");
  const ticked = new Set();
  const place = (/** @type {Record<string, any>} */ change) => `queues${query({ q, sort: sort === "worst" ? "" : sort, tree, under, ...change })}`;
  let [redraw, select] = [() => {}, () => {}];
  bar.append(el("form", { class: "filter", role: "search", onsubmit: (/** @type {any} */ event) => {
    event.preventDefault();
    go(place({ q: event.target.q.value, from: "" }));
  } }, el("input", { id: "filter", name: "q", value: q, "aria-label": "Name contains", placeholder: "a part of the name", autocomplete: "off", spellcheck: "false" })),
  segment("As a list or as a tree", ["", "1"], tree, (next) => go(place({ tree: next, under: "", from: "" })), { "": "List", 1: "Tree" }));
  const picked = el("div");
  card.append(tree ? steps(under, (prefix) => place({ under: prefix })) : "", body, picked);
  /** @type {Ticks | null} */
  const ticks = may("manage") ? { ticked, tick: (queue, on) => {
    if (on) ticked.add(queue);
    else ticked.delete(queue);
    redraw();
    select();
  } } : null;
  return { view: { topic: "queues", q, sort, from, limit: PAGE, ...tree && { tree, under } },
    draw: (/** @type {any} */ doc, /** @type {number} */ at) => {
      redraw = () => show(body, queueTable({ doc, now: at, sorted: sort === "name" ? "name" : `-${sort}`,
        sort: (by) => go(place({ sort: by.replace("-", ""), from: "" })), ticks, under: (prefix) => place({ under: prefix }),
        nothing: q ? empty(`No queue has “${q}” in its name`, el("a", { href: "#/queues" }, "All queues")) : empty("No queue has jobs") }),
      el("div", { class: "foot", "data-key": "foot" }, el("span", {}, `${number(doc.matching)} ${tree ? "rows" : doc.matching === 1 ? "queue" : "queues"}`), el("span", { class: "push acts" },
        from > 0 && el("a", { class: "btn small", href: `#/${place({ from: Math.max(from - PAGE, 0) || "" })}` }, "Previous"),
        from + PAGE < doc.matching && el("a", { class: "btn small", href: `#/${place({ from: from + PAGE })}` }, "Next"))));
      redraw();
      select = () => showSelection(picked, doc, ticked, body);
      select();
    } };
}

/** What is ticked, and what to do when that changes. @typedef {{ticked: Set<string>, tick: (queue: string, on: boolean) => void}} Ticks */

/** `under` makes the address of a branch, where the queues are a tree.
 * @param {{doc: any, now: number, sorted: string, sort: (by: string) => void, ticks: Ticks | null, under: (prefix: string) => string, nothing: any}} of */
function queueTable({ doc, now, sorted, sort, ticks, under, nothing }) {
  const row = (/** @type {string} */ each) => {
    const { branch, ...figures } = doc.queues[each];
    const [state, ...rest] = queueCells(each, doc.queues[each], now);
    return { key: each, selected: ticks ? ticks.ticked.has(each) : undefined, cells: [...ticks ? [branch ? null : tickBox(each, ticks)] : [],
      branch ? name(each, under(each), `${each}*`) : queueName(each), branch ? branchState(branch, figures) : state, ...rest, branch ? null : queueActs(each, figures)] };
  };
  return table({ caption: "Queues", columns: [...ticks ? [{ spoken: "select", is: "tick" }] : [], ...COLUMNS],
    rows: (doc.order ?? []).filter((/** @type {string} */ each) => doc.queues[each]).map(row), sorted, sort, nothing });
}

/** @param {string} queue @param {Ticks} ticks */
const tickBox = (queue, { ticked, tick }) => el("input", { type: "checkbox", class: "box", checked: ticked.has(queue), "data-stay": `tick ${queue}`,
  "aria-label": `Select ${plain(queue)}`, onchange: (/** @type {any} */ event) => tick(queue, event.target.checked) });

/** @param {number} queues @param {any} row */
const branchState = (queues, row) => (row.orphans ? pill("alarm", `no worker for ${number(row.orphans)}`)
  : row.paused_queues ? pill("paused", `${number(row.paused_queues)} paused`) : el("span", { class: "muted" }, `${number(queues)} queues`));

/** The verbs for what is ticked: pause for those that are delivered, resume for the others. They stay while the ticks do.
 * @param {Element} place @param {any} doc @param {Set<string>} ticked @param {Element} body */
function showSelection(place, doc, ticked, body) {
  const [paused, delivered] = [[], []].map(() => /** @type {string[]} */ ([]));
  for (const each of ticked) (doc.queues[each]?.paused ? paused : delivered).push(each);
  const key = JSON.stringify([paused, delivered]);
  if (place.getAttribute("data-shown") === key) return;
  place.setAttribute("data-shown", key);
  const clear = () => {
    ticked.clear();
    for (const box of body.querySelectorAll("td.tick input")) /** @type {HTMLInputElement} */ (box).checked = false;
    showSelection(place, doc, ticked, body);
  };
  place.replaceChildren(...ticked.size ? [selection(`${number(ticked.size)} selected`, [delivered.length ? pauseMany(delivered, false, clear) : null,
    paused.length ? pauseMany(paused, true, clear) : null], clear)] : []);
}

/** The way down to a branch of the tree. @param {string} under @param {(prefix: string) => string} to */
function steps(under, to) {
  const parts = under.match(/[^.:/]*[.:/]/g) ?? [];
  return el("nav", { "aria-label": "Branch", class: "foot" }, el("a", { href: `#/${to("")}` }, "All"),
    parts.map((part, at) => [el("span", { class: "muted", "aria-hidden": "true" }, "/"), el("a", { href: `#/${to(parts.slice(0, at + 1).join(""))}` }, part)]).flat());
}

// Budgets

async function budgetTable() {
  const { budgets } = await get("budgets");
  const now = serverNow();
  return table({ caption: "Budgets", columns: [{ head: "budget" }, { head: "free", is: "num w9" }, { spoken: "share", is: "w6 c2" },
    { head: "tokens come back", is: "w16 c1" }, { head: "waiting", is: "num w6", title: "ready jobs that draw from it" },
    { head: "unfinished", is: "num w6 c3" }, { head: "changed", is: "num w5 c4" }],
  rows: budgets.map((/** @type {any} */ each) => ({ key: each.key, cells: [name(each.key, `jobs${query({ f: lineOf({ "budgets.key": each.key }) })}`),
    [each.available <= 0 && each.waiting ? el("b", { class: "warn" }, number(each.available)) : number(each.available), el("span", { class: "muted" }, ` of ${number(each.allocation)}`)],
    meter(Math.min(each.allocation - each.available, each.allocation), each.allocation, `${number(each.allocation - each.available)} of ${number(each.allocation)} drawn`),
    each.held_until > now ? el("b", { class: "warn cut" }, `held for ${spanned(each.held_until - now)}`) : comesBack(each), number(each.waiting), number(each.unfinished), ago(each.updated_at, now)] })),
  nothing: empty("There is no budget", "A job that draws from one waits until it has enough tokens: while other jobs run, or at a rate.") });
}

/** @param {any} budget */
const comesBack = ({ allocation, strategy: { duration_ms: ms, burst } }) => el("span", { class: "cut" }, ms === undefined
  ? "when the job ends" : `${number(allocation)} in ${spanned(ms)}${burst ? `, at most ${number(burst)} at once` : ""}`);
