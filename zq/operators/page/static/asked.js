// Parts of a page that the live stream does not carry: asked for again and again, and each says of when it is.

import { clock, el, held, show } from "./dom.js";
import { serverNow } from "./net.js";
import { banner, button, skeleton } from "./parts.js";

const SKELETON_MS = 200;

/** A part that is asked for. `draw` is called with each frame of the page, so that it rests when the page does. */
export class Asked {
  /** @param {() => Promise<any>} make What is shown. @param {number} [every] Milliseconds. */
  constructor(make, every = 5000) {
    this.make = make;
    this.every = every;
    this.askedAt = -Infinity;
    this.busy = false;
    /** Of which question the answer counts. */
    this.turn = 0;
    this.place = el("div", { "aria-busy": "true" });
    this.age = el("span", { class: "muted asked" });
    this.again();
  }

  /** Ask again, if it is time for that. */
  draw() {
    if (!this.busy && performance.now() - this.askedAt >= this.every) this.again();
  }

  /** Ask now. */
  async again() {
    const mine = this.turn += 1;
    this.busy = true;
    this.askedAt = performance.now();
    const late = setTimeout(() => !this.place.childElementCount && this.place.append(skeleton()), SKELETON_MS);
    try {
      const found = await this.make();
      if (mine === this.turn) {
        // What redraws itself stays where it is: out of its place for a moment, it would lose its focus and where it was scrolled to.
        if (found?.parentNode === this.place) this.place.querySelector(":scope > [data-key=failed]")?.remove();
        else show(this.place, found);
        this.age.textContent = `asked at ${clock(serverNow())}`;
      }
    } catch (error) {
      if (mine === this.turn) this.fail(/** @type {Error} */ (error).message);
    }
    clearTimeout(late);
    if (mine !== this.turn) return;
    this.busy = false;
    this.place.removeAttribute("aria-busy");
  }

  /** What is shown stays, under a line that says so. @param {string} text */
  fail(text) {
    const before = this.place.querySelector("[data-key='failed'] > span");
    if (before) {
      // Whoever reads or presses it, goes on.
      if (before.textContent !== text) before.textContent = text;
      return;
    }
    for (const each of this.place.querySelectorAll(".skeletons")) each.remove();
    // It waits for the next failure, if it would push a row away from the pointer.
    if (held.row && this.place.childElementCount) return;
    const said = banner("This part cannot be asked for.", text, { failed: true, inner: true,
      button: button("Try again", () => this.again(), { class: "small" }) });
    said.setAttribute("data-key", "failed");
    said.setAttribute("role", "alert");
    this.place.prepend(said);
  }
}
