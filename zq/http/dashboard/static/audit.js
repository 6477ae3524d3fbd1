// Audit: what operators have done.

import { el, show, table, time } from "./dom.js";
import { get, query } from "./net.js";

const PAGE = 50;

/** @param {Element} main */
export function audit(main) {
  const body = el("div", { "aria-busy": "true" });
  const said = el("p", { role: "status" });
  let rows = /** @type {any[]} */ ([]);
  const more = el("button", { type: "button", onclick: () => load(rows.at(-1)?.seq) }, "Earlier actions");
  main.append(el("h1", {}, "Audit"), body, said, el("p", { class: "buttons" }, more));

  const load = async (/** @type {number | undefined} */ before) => {
    try {
      const found = (await get(`audit${query({ before, limit: PAGE })}`)).actions;
      rows = rows.concat(found);
      more.hidden = found.length < PAGE;
      show(body, table("Actions, the latest first", ["when", "who", "from", "what", "filter", "answer"],
        rows.map((each) => ({ key: String(each.seq), cells: [time(each.at), each.actor ?? "–", each.address,
          `${each.method} ${each.path}`, each.query ?? "–",
          each.answer === undefined ? String(each.status) : JSON.stringify(each.answer)] })),
        "No operator has done anything."));
    } catch (error) {
      said.textContent = /** @type {Error} */ (error).message;
    }
    body.removeAttribute("aria-busy");
  };
  load(undefined);
  return { view: { topic: "pulse" }, draw: () => undefined };
}
