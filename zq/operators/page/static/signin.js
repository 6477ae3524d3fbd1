// The form to sign in: at first, and when a session has ended.

import { el, plain } from "./dom.js";
import { Refusal, address, ask, keepToken } from "./net.js";
import { banner } from "./parts.js";

/** Where one is back afterwards: the words of the address. */
function back() {
  const [wanted, values] = address();
  const words = [...values.values()].join(" ");
  return [wanted[0].toUpperCase() + wanted.slice(1), words && [", ", el("code", {}, plain(words).slice(0, 80))]];
}

/** `why` says what has ended, or what a key lacks; empty at first.
 * @param {HTMLElement} main @param {string} why @param {() => void} after */
export function signIn(main, why, after) {
  const said = el("p", { id: "refused", class: "error", role: "alert" });
  const key = el("input", { id: "key", name: "key", type: "password", required: true, autocomplete: "current-password", spellcheck: "false", "aria-describedby": "refused" });
  const go = el("button", { type: "submit", class: "btn solid" }, "Sign in");
  const form = el("form", { class: "stack fields one", onsubmit: async (/** @type {Event} */ event) => {
    event.preventDefault();
    go.disabled = true;
    try {
      const reply = await ask("session", { method: "POST", body: JSON.stringify({ key: key.value }), headers: { "Content-Type": "application/json" } });
      keepToken((await reply.json()).token);
      after();
    } catch (error) {
      key.setAttribute("aria-invalid", "true");
      said.textContent = error instanceof Refusal ? error.message : String(error);
      key.select();
    }
    go.disabled = false;
  } }, el("div", { class: "field" }, el("label", { for: "key" }, "Access key"), key, said), go);
  main.className = "alone";
  main.replaceChildren(...why ? [banner(why, ["Sign in, and you are back at ", back(), "."].flat(2))] : [],
    el("section", { class: "card", "aria-labelledby": "sign-in" }, el("h1", { id: "sign-in" }, "Sign in"), form,
      el("p", { class: "muted" }, "Keys are made on the server. This one may look, requeue and pause:"),
      el("pre", { class: "code", tabindex: "0" }, "zq keys add mia --scopes read,manage --keys FILE"),
      el("p", { class: "muted" }, "The page keeps a cookie that no script can read, for an hour after its last request and twelve hours at most.")));
  key.focus();
}
