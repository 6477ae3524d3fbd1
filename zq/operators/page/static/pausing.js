// Pausing and resuming queues: for how long, and whether there is such a queue.

import { actionButton, confirm, nearTo, quoted } from "./actions.js";
import { clock, el, number, plain } from "./dom.js";
import { oneUnit, spanned } from "./fields.js";
import { send, serverNow } from "./net.js";
import { queueName } from "./parts.js";

/** @param {string} queue */
const settingsPath = (queue) => `queues/${encodeURIComponent(queue)}/settings`;

/** `mail`, `mail and sms`, or `mail, sms and 3 more`. @param {string[]} names */
function together(names) {
  const shown = names.slice(0, names.length > 4 ? 3 : 4);
  const rest = names.length - shown.length;
  return rest ? `${shown.join(", ")} and ${number(rest)} more` : shown.join(", ").replace(/, ([^,]*)$/, " and $1");
}

/** What is said of a name that no queue has. @param {string} queue @param {string[]} near */
const unknown = (queue, near) => [`There is no queue “${plain(queue)}” yet. `, ...near.length
  ? ["Did you mean ", near.map((each, at) => [at ? ", " : "", queueName(each)]).flat(), "? "] : [],
"It would hold the jobs that come under this name."].flat();

/** @param {string[]} queues @param {() => void} [after] */
export async function pause(queues, after) {
  const many = queues.length > 1;
  const command = `zq pause ${many ? '"$queue"' : quoted(queues[0])}`;
  const { known, near } = many ? { known: true, near: [] } : await nearTo(queues[0]);
  const body = { paused: true, pause_reason: null, paused_until: null };
  confirm({
    title: many ? `Pause ${number(queues.length)} queues` : `Pause ${queues[0]}`, each: queues,
    say: [known ? null : el("b", { class: "warn" }, unknown(queues[0], near), " "),
      `${many ? `Jobs of ${together(queues)} are` : "Its jobs are"} not delivered. Jobs in flight go on, and new ones are still stored.`],
    fields: [
      { name: "for", label: "Pause for", kind: "duration", placeholder: "until somebody resumes it", stays: true,
        help: (ms) => (ms ? `${spanned(ms)}, until ${clock(serverNow() + ms)}` : null) },
      { name: "reason", label: "Reason", kind: "text", placeholder: "everybody sees it", stays: true },
    ],
    filled: ({ for: ms, reason }) => ({
      zq: command + (ms ? ` --for ${oneUnit(ms)}` : "") + (reason ? ` --reason ${quoted(reason)}` : "")
        + (known ? "" : " --create"),
      body: { paused: true, pause_reason: reason || null, paused_until: ms ? serverNow() + ms : null } }),
    button: many ? `Pause ${number(queues.length)} queues` : "Pause", zq: command, method: "PATCH",
    path: many ? "queues/$queue/settings" : settingsPath(queues[0]), body,
    done: () => `${together(queues)} ${many ? "are" : "is"} paused.`,
    undo: (answers) => Promise.all(queues.slice(0, answers.length).map((queue) => send("PATCH", settingsPath(queue), { paused: null }))),
  }, after);
}

/** @param {string[]} queues @param {() => void} [after] */
export const resume = (queues, after) => confirm({
  title: queues.length > 1 ? `Resume ${number(queues.length)} queues` : `Resume ${queues[0]}`, each: queues,
  say: `${queues.length > 1 ? `Jobs of ${together(queues)} are` : "Its jobs are"} delivered again, at once.`,
  button: queues.length > 1 ? `Resume ${number(queues.length)} queues` : "Resume", method: "PATCH", body: { paused: null },
  zq: `zq resume ${queues.length > 1 ? '"$queue"' : quoted(queues[0])}`,
  path: queues.length > 1 ? "queues/$queue/settings" : settingsPath(queues[0]),
  done: () => `${together(queues)} ${queues.length > 1 ? "are" : "is"} delivered again.`,
}, after);

/** The button that pauses a queue, or resumes it.
 * @param {string} queue @param {boolean} paused @param {() => void} [after] @param {Record<string, any>} [more] */
export const pauseButton = (queue, paused, after, more) => pauseMany([queue], paused, after, more);

/** The change of one queue, or of several by a loop.
 * @param {string[]} queues @param {boolean} paused @param {() => void} [after] @param {Record<string, any>} [more] */
export function pauseMany(queues, paused, after, more) {
  const verb = paused ? "Resume" : "Pause";
  return actionButton("manage", queues.length > 1 ? `${verb} ${number(queues.length)}…` : `${verb}…`,
    () => (paused ? resume : pause)(queues, after), more);
}
