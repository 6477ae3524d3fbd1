// Sweeps: the changes of many jobs that run, and those that have ended.

import { actionButton, confirm, quoted } from "./actions.js";
import { badge, el, link, number, show, table, time } from "./dom.js";
import { get, query } from "./net.js";

const PAGE = 50;

/** @param {any} sweep */
const named = (sweep) => Object.entries(sweep.by).map(([name, value]) => `${name}:${value}`).join(" ") || "all jobs";

/** @param {any} sweep */
const who = (sweep) => [sweep.actor, sweep.reason && `“${sweep.reason}”`].filter(Boolean).join(": ") || "–";

/** How far it has come. @param {any} sweep */
const soFar = (sweep) => `${number(sweep.changed)}${sweep.counted === undefined ? "" : ` of ${number(sweep.counted)}`}`
  + `, ${Math.floor(sweep.progress * 100)} %`;

/** @param {any} sweep */
const stopButton = (sweep) => actionButton("manage", "Stop…", () => confirm({
  title: `Stop sweep ${sweep.id}`, button: "Stop it", say: "What it has changed so far stays.",
  zq: `zq sweeps stop ${sweep.id}`, method: "DELETE", path: `sweeps/${sweep.id}`,
  done: () => "The sweep stops before its next slice.",
}));

/** @param {any} now What the server says of the sweep. @param {() => void} after */
function undo(now, after) {
  const zq = `zq sweeps undo ${now.id} --yes`;
  const path = `sweeps/${now.id}/undo`;
  const many = `${now.exact ? "" : "at least "}${number(now.left)}`;
  confirm({
    title: `Undo sweep ${now.id}`, button: `Take ${many} jobs back`,
    say: `It has cancelled ${number(now.changed)} jobs, and ${many} of them are still there. They wait again in`
      + " their old places. One whose unique key was taken, or whose time is over, stays cancelled.",
    asks: [["reason", "Reason"]],
    filled: ({ reason }) => ({ zq: zq + (reason && ` --reason ${quoted(reason)}`), path: path + query({ reason }) }),
    zq, method: "POST", path,
    done: ({ undone, kept, gone }) => [`${number(undone)} jobs wait again.`,
      ...Object.entries(kept).map(([why, n]) => `${number(n)} stay cancelled: ${WHY[why] ?? why}.`),
      ...gone ? [`${number(gone)} are no longer stored.`] : []].join(" "),
  }, after);
}

const WHY = /** @type {Record<string, string>} */ ({ key_taken: "another job has their unique key",
  expired: "their time to live is over", budget_gone: "a budget is gone or too small",
  queue_full: "their queue is full" });

/** @param {any} sweep @param {() => void} again */
const endedRow = (sweep, again) => ({ key: sweep.id, cells: [
  `${sweep.id} ${sweep.verb}`, time(sweep.started_at), who(sweep), named(sweep), number(sweep.changed),
  sweep.state === "done" ? badge("completed", "done") : badge("paused", `stopped at ${Math.floor(sweep.progress * 100)} %`),
  sweep.verb !== "cancel" ? "–" : sweep.undone === sweep.changed ? "undone" : el("span", {},
    sweep.undone ? `${number(sweep.undone)} undone ` : null,
    actionButton("manage", "Undo…", async () => undo(await get(`sweeps/${sweep.id}`), again))),
] });

/** @param {Element} main */
export function sweeps(main) {
  const running = el("ul", { class: "findings" });
  const none = el("p", { class: "empty" }, "No sweep runs.");
  const ended = el("div", { "aria-busy": "true" });
  const said = el("p", { role: "status" });
  const rows = /** @type {Map<string, any>} */ (new Map());
  let known = "";
  main.append(el("h1", {}, "Sweeps"), el("p", {}, "A sweep is a change of all jobs that match a filter. ",
    link("jobs", "Begin one on the page Jobs.")), el("h2", {}, "Running"), running, none,
  el("h2", {}, "Ended"), ended, said);

  const load = async () => {
    try {
      const found = (await get(`sweeps/ended?limit=${PAGE}`)).sweeps;
      show(ended, table("Sweeps that have changed jobs, the latest first",
        ["sweep", "began", "who", "filter", "changed", "result", "undo"],
        found.map((/** @type {any} */ sweep) => endedRow(sweep, load)), "No sweep has changed jobs."));
      said.textContent = "";
    } catch (error) {
      said.textContent = /** @type {Error} */ (error).message;
    }
    ended.removeAttribute("aria-busy");
  };

  /** A row that stays, so that its button keeps the focus. @param {any} sweep */
  const rowOf = (sweep) => {
    const text = el("span");
    const bar = el("progress", { max: 1, "aria-label": `Progress of sweep ${sweep.id}` });
    const place = el("li", { "data-key": sweep.id }, `${sweep.id} ${sweep.verb} ${named(sweep)} (${who(sweep)}) `,
      bar, " ", text, " ", stopButton(sweep));
    return { place, text, bar };
  };
  return { view: { topic: "sweeps" }, draw: (/** @type {any} */ doc) => {
    for (const sweep of doc.sweeps) {
      const row = rows.get(sweep.id) ?? rowOf(sweep);
      rows.set(sweep.id, row);
      row.bar.value = sweep.progress;
      row.text.textContent = soFar(sweep);
      if (!row.place.isConnected) running.append(row.place);
    }
    const ids = doc.sweeps.map((/** @type {any} */ sweep) => sweep.id);
    for (const [id, row] of rows) {
      if (ids.includes(id)) continue;
      row.place.remove();
      rows.delete(id);
    }
    none.hidden = ids.length > 0;
    if (`.${ids}` !== known) load();
    known = `.${ids}`;
  } };
}
