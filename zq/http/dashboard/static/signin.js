// The form to sign in: at first, and when a session has ended.

import { el } from "./dom.js";
import { Refusal, ask, keepToken } from "./net.js";

/** @param {HTMLElement} main @param {string} why @param {() => void} after */
export function signIn(main, why, after) {
  const said = el("p", { id: "refused", class: "error", role: "alert" }, why);
  const key = el("input", { id: "key", name: "key", type: "password", required: true, autocomplete: "current-password", spellcheck: "false", "aria-describedby": "refused" });
  main.className = "alone";
  main.replaceChildren(el("section", { class: "card", "aria-labelledby": "sign-in" }, el("h1", { id: "sign-in" }, "Sign in"),
    el("form", { class: "stack fields one", onsubmit: async (/** @type {any} */ event) => {
      event.preventDefault();
      try {
        const reply = await ask("session", { method: "POST", body: JSON.stringify({ key: key.value }), headers: { "Content-Type": "application/json" } });
        keepToken((await reply.json()).token);
        after();
      } catch (error) {
        key.setAttribute("aria-invalid", "true");
        said.textContent = error instanceof Refusal ? error.message : String(error);
        key.focus();
      }
    } }, el("div", { class: "field" }, el("label", { for: "key" }, "Access key"), key, said), el("button", { class: "btn solid" }, "Sign in"))));
  key.focus();
}
