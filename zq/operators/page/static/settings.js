// What this browser remembers of the page: zone, theme, pace and keys.

import { el, zone } from "./dom.js";
import { button, dialog } from "./parts.js";
import { ask } from "./net.js";
import { rights } from "./rights.js";

const KEYS = [
  ["/", "find a job, a queue or a type"], ["f", "the filter line"], ["j k", "next and previous row"], ["Enter", "open the row"],
  ["Esc", "close, then clear"], ["x", "tick the row"], ["Shift x", "tick up to here"], ["r", "requeue"], ["c", "cancel"], ["m", "move"],
  ["#", "delete, which always asks"], ["y", "copy the id"], ["[ ]", "range of the charts"], ["p", "pause updates"], ["t", "theme"],
  ["z", "zone: yours or UTC"], ["?", "this"],
];
const PACES = ["1", "2", "5", "10", "30", "60"];
const THEMES = { "": "as the system", light: "light", dark: "dark" };

/** @param {string} id @param {string} label @param {Record<string, string>} values @param {string} chosen @param {(value: string) => void} choose */
const choice = (id, label, values, chosen, choose) => el("div", { class: "field" }, el("label", { for: id }, label),
  el("select", { id, onchange: (/** @type {any} */ event) => choose(event.target.value) },
    Object.entries(values).map(([value, word]) => el("option", { value, selected: value === chosen }, word))));

/** @param {{live: any, theme: string, setTheme: (theme: string) => void, turnZone: () => void, pages: Record<string, [string | null, string, ...any[]]>}} page */
export function settings({ live, theme, setTheme, turnZone, pages }) {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const now = localStorage.getItem("zone") ?? "";
  const keys = KEYS.concat(Object.entries(pages).filter(([, [, key]]) => key).map(([name, [title, key]]) => [`g ${key}`, title ?? name[0].toUpperCase() + name.slice(1)]));
  const box = dialog({ title: "Settings and keys", keep: "Close", act: () => box.close(), parts: [
    el("div", { class: "part fields one" },
      choice("zone", "Times in", { "": own, UTC: "UTC" }, now, turnZone),
      choice("theme", "Theme", THEMES, theme, setTheme),
      choice("pace", "New numbers", Object.fromEntries(PACES.map((each) => [each, each === "1" ? "every second" : `every ${each} s`])),
        String(live.every), (value) => {
          live.every = Number(value);
          localStorage.setItem("every", value);
        }),
      el("div", { class: "field" }, el("label", { for: "keys" }, "Keys"), el("input", { id: "keys", type: "checkbox", class: "box",
        checked: localStorage.getItem("keys") !== "off", onchange: (/** @type {any} */ event) =>
          localStorage.setItem("keys", event.target.checked ? "on" : "off") }))),
    el("dl", { class: "part facts" }, keys.map(([key, text]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, text)]).flat())],
  buttons: [rights.name ? button(`Sign out ${rights.name}`, async () => {
    await ask("session", { method: "DELETE" });
    location.reload();
  }) : null] });
}
