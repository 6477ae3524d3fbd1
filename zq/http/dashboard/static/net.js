// The server: requests of the native API, and the live stream.

/** @typedef {{seq: number, at: number, full?: object, patch?: object}} Frame */

/** What the server has refused, in its own words. */
export class Refusal extends Error {
  /** @param {number} status @param {string} text */
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/**
 * @param {string} path Relative to the page.
 * @param {RequestInit} [options]
 */
export async function ask(path, options = {}) {
  let reply;
  try {
    reply = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch {
    throw new Refusal(0, "The server cannot be reached.");
  }
  if (reply.ok) return reply;
  let text = reply.statusText;
  try {
    text = (await reply.json()).error;
  } catch {
    // A proxy has answered.
  }
  throw new Refusal(reply.status, text);
}

/** @param {string} path Of the native API. */
export const getText = async (path) => (await ask(`api/${path}`)).text();
/** @param {string} path @returns {Promise<any>} */
export const get = async (path) => JSON.parse(await getText(path));

/**
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 * @returns {Promise<any>}
 */
export async function send(method, path, body) {
  const options = body === undefined ? {} : {
    body: JSON.stringify(body), headers: { "Content-Type": "application/json" },
  };
  const text = await (await ask(`api/${path}`, { method, ...options })).text();
  return text ? JSON.parse(text) : {};
}

/** A query without empty values. @param {Record<string, any>} values */
export function query(values) {
  const given = Object.entries(values).filter(([, value]) => value !== "" && value !== undefined);
  const text = given.map(([name, value]) =>
    `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join("&");
  return text && `?${text}`;
}

/** Apply a merge patch (RFC 7396). @param {any} target @param {any} patch @returns {any} */
export function merged(target, patch) {
  if (patch === null || typeof patch !== "object" || Array.isArray(patch)) return patch;
  const result = { ...target };
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else result[name] = name in result ? merged(result[name], value) : value;
  }
  return result;
}

export const STALE_MS = 5000;

/** One live view at a time. It is closed while the page is hidden. */
export class Live {
  /**
   * @param {(document: any, at: number) => void} onDocument
   * @param {(state: string) => void} onState
   */
  constructor(onDocument, onState) {
    this.onDocument = onDocument;
    this.onState = onState;
    this.view = {};
    this.paused = false;
    /** How many seconds pass between two changes of the page. */
    this.every = 1;
    this.drawn = -Infinity;
    this.heard = performance.now();
    /** How far this clock is ahead of the server's, in ms, when the stream began. */
    this.ahead = 0;
    /** Whether something has come that is not shown yet. */
    this.late = false;
    /** @type {AbortController | null} */
    this.wire = null;
    /** @type {[any, number] | null} */
    this.last = null;
    document.addEventListener("visibilitychange", () => this.restart());
    setInterval(() => this.check(), 500);
  }

  /** Another view, or the same one for a page that is new. @param {Record<string, string | number>} view */
  watch(view) {
    if (this.wire && query(view) === query(this.view)) {
      this.again();
      return;
    }
    this.view = view;
    this.restart();
  }

  /** Show once more what came last. */
  again() {
    if (!this.last) return;
    this.late = false;
    this.drawn = performance.now();
    this.onDocument(...this.last);
  }

  /** @param {boolean} paused */
  pause(paused) {
    this.paused = paused;
    this.restart();
  }

  restart() {
    this.wire?.abort();
    this.wire = null;
    this.last = null;
    this.drawn = -Infinity;
    if (document.hidden || this.paused) {
      this.onState(this.paused ? "paused" : "hidden");
      return;
    }
    this.wire = new AbortController();
    this.read(this.wire);
  }

  check() {
    if (!this.wire || document.hidden || this.paused) return;
    if (this.late && this.isTime()) this.again();
    if (performance.now() - this.heard >= STALE_MS) this.onState("stale");
  }

  isTime() {
    return this.every <= 1 || performance.now() - this.drawn >= this.every * 1000;
  }

  /** @param {AbortController} wire */
  async read(wire) {
    while (!wire.signal.aborted) {
      try {
        await this.readOnce(wire);
      } catch (error) {
        if (wire.signal.aborted) return;
        if (error instanceof Refusal && [401, 403].includes(error.status)) {
          this.wire = null;
          this.onState(`refused ${error.message}`);
          return;
        }
      }
      if (wire.signal.aborted) return;
      this.onState("lost");
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }

  /** @param {AbortController} wire */
  async readOnce(wire) {
    const reply = await ask(`live${query(this.view)}`, { signal: wire.signal });
    this.ahead = Date.now() - (Date.parse(reply.headers.get("Date") ?? "") || Date.now());
    const reader = /** @type {ReadableStream<Uint8Array>} */ (reply.body).getReader();
    const decoder = new TextDecoder();
    let rest = "";
    let document = {};
    for (;;) {
      const { done, value } = await reader.read();
      if (done || wire.signal.aborted) return;
      this.heard = performance.now();
      this.onState("live");
      const events = (rest + decoder.decode(value, { stream: true })).split("\n\n");
      rest = events.pop() ?? "";
      for (const event of events) {
        if (!event.startsWith("data: ")) continue;
        const frame = /** @type {Frame} */ (JSON.parse(event.slice(6)));
        document = frame.full ?? merged(document, frame.patch);
        this.last = [document, frame.at];
        this.late = !this.isTime();
        if (!this.late) this.again();
        this.onState("live");
      }
    }
  }
}
