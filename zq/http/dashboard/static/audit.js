// Audit: what operators have done, and who may do what.

import { may, rights, save } from "./actions.js";
import { el, show, table, time } from "./dom.js";
import { ask, get, query } from "./net.js";
import { once } from "./server.js";

const PAGE = 50;
const LINES = 1000;

/** @param {Element} main */
export function audit(main) {
  const body = el("div", { "aria-busy": "true" });
  const said = el("p", { role: "status" });
  const keys = el("div");
  let rows = /** @type {any[]} */ ([]);
  const more = el("button", { type: "button", onclick: () => load(rows.at(-1)?.seq) }, "Earlier actions");
  main.append(el("h1", {}, "Audit"), body, said, el("p", { class: "buttons" }, more,
    el("button", { type: "button", onclick: saveAll }, "Save all as NDJSON")), el("h2", {}, "Keys and scopes"), keys);

  const load = async (/** @type {number | undefined} */ before) => {
    try {
      const found = (await get(`audit${query({ before, limit: PAGE })}`)).actions;
      rows = rows.concat(found);
      more.hidden = found.length < PAGE;
      show(body, table("Actions, the latest first", ["when", "who", "from", "what", "filter", "answer"],
        rows.map((each) => ({ key: String(each.seq), cells: [time(each.at), each.actor ?? "–", each.address,
          long(`${each.method} ${each.path}`), long(each.query ?? "–"),
          long(each.answer === undefined ? String(each.status) : JSON.stringify(each.answer))] })),
        "No operator has done anything."));
    } catch (error) {
      said.textContent = /** @type {Error} */ (error).message;
    }
    body.removeAttribute("aria-busy");
  };

  async function saveAll() {
    const parts = [];
    try {
      for (let before; ;) {
        const text = await (await ask(`api/audit${query({ before, limit: LINES })}`,
          { headers: { Accept: "application/x-ndjson" } })).text();
        parts.push(text);
        const lines = text.trimEnd().split("\n");
        if (lines.length < LINES) break;
        before = JSON.parse(lines[LINES - 1]).seq;
      }
      save("audit.ndjson", new Blob(parts, { type: "application/x-ndjson" }));
    } catch (error) {
      said.textContent = /** @type {Error} */ (error).message;
    }
  }

  load(undefined);
  once(keys, keyTable);
  return { view: { topic: "pulse" }, draw: () => undefined };
}

/** Text that may be long. @param {string} text */
const long = (text) => el("span", { class: "says" }, text);

async function keyTable() {
  if (!rights.name) return el("p", {}, "There are no keys: whoever reaches this page may do all that it offers.");
  const own = { name: rights.name, scopes: rights.scopes, queues: rights.queues };
  const found = may("manage") && !own.queues.length ? (await get("keys")).keys : [own];
  return [el("p", {}, `You are signed in by the key ${own.name}.`),
    table("Keys", ["key", "scopes", "queues"], found.map((/** @type {any} */ key) => ({ key: key.name,
      cells: [key.name, key.scopes.join(", "), key.queues.map((/** @type {string} */ each) => `${each}*`).join(", ") || "all"] })))];
}

export { audit as activity };
