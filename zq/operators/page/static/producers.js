// Producers: who numbers jobs, and the last number that each has stored.

import { confirm, may, quoted } from "./actions.js";
import { Asked } from "./asked.js";
import { ago, el, held, number, plain } from "./dom.js";
import { get, query, serverNow } from "./net.js";
import { button, empty, menu, name, table } from "./parts.js";

const PAGE = 50;

/** The tab of producers, by name. @param {Element} card */
export function producers(card) {
  let after = "";
  const turn = (/** @type {string} */ next) => {
    after = next;
    asked.again();
  };
  /** Who was deleted here last: that row goes, though it has the focus again. */
  let gone = "";
  const asked = new Asked(async () => {
    const found = await get(`producers${query({ from: after, limit: PAGE })}`);
    if (held.row?.getAttribute("data-key") === gone) held.pointed = held.focused = null;
    return [producerTable(found.producers, (deleted) => {
      gone = deleted;
      asked.again();
    }), (after || found.next) && el("div", { class: "foot" },
      el("span", { class: "push acts" }, after && button("First ones", () => turn("")), found.next && button("Later ones", () => turn(found.next))))];
  });
  card.append(asked.place, el("div", { class: "foot" }, asked.age));
  return { view: { topic: "pulse" }, draw: () => asked.draw() };
}

/** @param {any[]} found @param {(deleted: string) => void} again */
function producerTable(found, again) {
  const now = serverNow();
  const acts = may("manage");
  return table({ caption: "Producers", columns: [{ head: "producer" }, { head: "epoch", is: "w12 c2" },
    { head: "last number", is: "num w9" }, { head: "stored", is: "num w6 c1", title: "when its last jobs were stored" }, ...acts ? [{ spoken: "actions", is: "do wact" }] : []],
  rows: found.map((each) => ({ key: each.name, cells: [name(each.name), name(each.epoch), number(each.last), ago(each.stored_at, now),
    ...acts ? [menu(`More for ${plain(each.name)}`, [["Delete…", () => forget(each, again), "manage"]])] : []] })),
  nothing: empty("There is no producer", "One that numbers its jobs is recognised for ever: what it repeats is never stored twice.") });
}

/** @param {any} producer @param {(deleted: string) => void} again */
function forget(producer, again) {
  const shown = plain(producer.name);
  confirm({ title: `Delete the producer ${shown}?`, button: "Delete the producer", keep: "Keep the producer", destroys: true, method: "DELETE",
    say: `Its jobs stay. Its last number, ${number(producer.last)}, is forgotten: what it has stored so far would be stored again if it were repeated.`,
    zq: `zq producers forget ${quoted(producer.name)}`, path: `producers/${encodeURIComponent(producer.name)}`,
    done: () => `The producer ${shown} is deleted.` }, () => again(producer.name));
}
