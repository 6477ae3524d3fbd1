// What the server lets this visitor do.

import { button, toast } from "./parts.js";

export const rights = { scopes: /** @type {string[]} */ ([]), masked: false, name: "", url: "", queues: /** @type {string[]} */ ([]) };

/** @param {string} scope */
export const may = (scope) => rights.scopes.includes(scope);

/** A button for those who have a scope. What it does is loaded when somebody presses it: `load` gives the script, `act` has that do it.
 * @template T @param {string} scope @param {string} label @param {() => Promise<T>} load @param {(script: T) => void} act @param {Record<string, any>} [more] */
export const lateButton = (scope, label, load, act, more) =>
  (may(scope) ? button(label, () => load().then(act, () => toast("This part cannot be loaded: the server is silent, or runs another version now.", { failed: true })), { "data-scope": scope, ...more }) : null);
