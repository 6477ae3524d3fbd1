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

/** What is told when the server no longer knows the session. */
export const lost = { session: () => {} };

/** Where the token of the session is kept: for all tabs of this page, and for no other port. */
const TOKEN = `token ${location.pathname}`;
/** @param {string} token */
export const keepToken = (token) => localStorage.setItem(TOKEN, token);

/** The page that the address names, and its values, of which hand-typed ones may have signs of their own.
 * @returns {[string, URLSearchParams]} */
export function address() {
  const [wanted, ...values] = location.hash.slice(2).split("?");
  return [wanted || "overview", new URLSearchParams(values.join("?"))];
}

/** How far this clock is ahead of the server's, in ms: as little as the dates of all answers allow, which tell whole seconds. */
export let ahead = 0;

/** The time by the server's clock, in ms. */
export const serverNow = () => Date.now() - ahead;

/** Learn from the date of an answer what the server's clock says. @param {Response} reply @param {number} sent When it was asked for. */
function hearClock(reply, sent) {
  const told = Date.parse(reply.headers.get("Date") ?? "");
  if (told) ahead = Math.min(Math.max(ahead, sent - told - 1000), Date.now() - told);
}

/**
 * @param {string} path Relative to the page.
 * @param {RequestInit & {headers?: Record<string, string>}} [options]
 */
export async function ask(path, options = {}) {
  const token = localStorage.getItem(TOKEN);
  const headers = { "Zq-Strict": "1", ...options.headers, ...(token && { "Zq-Session": token }) };
  const sent = Date.now();
  let reply;
  try {
    reply = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options, headers });
  } catch {
    throw new Refusal(0, "The server cannot be reached.");
  }
  hearClock(reply, sent);
  if (reply.ok) return reply;
  let text = reply.statusText;
  try {
    text = (await reply.json()).error;
  } catch {
    // A proxy has answered.
  }
  // A refusal of what was sent before somebody has signed in again says nothing of the session that is.
  if (reply.status === 401 && path !== "session" && token === localStorage.getItem(TOKEN)) lost.session();
  throw new Refusal(reply.status, text);
}

/** Who looks and what is seen first: they are asked for while the other scripts of the page still come.
 * @type {{who: Promise<Response> | null, view: string, wire: AbortController, reply: Promise<Response> | null}} */
export const first = { who: ask("session"), view: "?topic=overview", wire: new AbortController(), reply: null };
/** Whether the page begins with the overview, which can be asked for before its script is there. */
export const beginsWithOverview = ["", "#/", "#/overview"].includes(location.hash);
if (beginsWithOverview && !document.hidden) {
  first.reply = ask(`live${first.view}`, { signal: first.wire.signal });
}
for (const each of [first.who, first.reply]) each?.catch(() => {});

/** @param {string} path Of the native API. */
export const getText = async (path) => (await ask(`api/${path}`)).text();
/** @param {string} path @returns {Promise<any>} */
export const get = async (path) => JSON.parse(await getText(path));

/** A body as its text: a number that a script would round stays as it is. */
export class Json {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }
}

/** @param {unknown} body What is sent: a `Json`, or any value. */
export const textOf = (body) => (body instanceof Json ? body.text : JSON.stringify(body));

/**
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 * @returns {Promise<any>}
 */
export async function send(method, path, body) {
  const options = body === undefined ? {} : {
    body: textOf(body), headers: { "Content-Type": "application/json" },
  };
  const text = await (await ask(`api/${path}`, { method, ...options })).text();
  return text ? JSON.parse(text) : {};
}

/** A dedupe id of its own: a job that is sent with it again is stored once. */
export const freshId = () => ({ id: crypto.getRandomValues(new Uint32Array(4)).join("-") });

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
    /** When the stream was asked for. */
    this.opened = this.heard;
    /** When the last document came, and until when it holds. */
    this.came = this.heard;
    this.holds = this.heard;
    /** Whether something has come that is not shown yet. */
    this.late = false;
    /** When the server was asked for the document, and whether it has answered, while the stream is silent. */
    this.polled = -Infinity;
    this.polls = false;
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
    this.last = null;
    this.drawn = -Infinity;
    this.restart();
  }

  /** What came last, and the server's time for which it holds: as long as the server sees that nothing has changed, ages go on. */
  get now() {
    if (!this.last) return null;
    const [document, at] = this.last;
    return /** @type {[any, number]} */ ([document, at + Math.max(this.holds - this.came, 0)]);
  }

  /** Show once more what came last. */
  again() {
    if (!this.now) return;
    this.late = false;
    this.drawn = performance.now();
    this.onDocument(...this.now);
  }

  /** @param {any} document @param {number} at */
  keep(document, at) {
    this.last = [document, at];
    this.came = this.holds = performance.now();
  }

  /** How old what is shown is, in ms: it holds for as long as the server sees that nothing has changed. */
  old() {
    if (!this.last) return undefined;
    const now = performance.now();
    return now - (this.late || this.paused ? Math.min(this.drawn, this.holds) : this.holds);
  }

  /** For how long somebody waits for a word of the server. */
  silence() {
    return performance.now() - Math.max(this.heard, this.opened);
  }

  /** @param {boolean} paused */
  pause(paused) {
    this.paused = paused;
    this.restart();
  }

  restart() {
    this.wire?.abort();
    this.wire = null;
    if (document.hidden || this.paused) {
      this.onState(this.paused ? "paused" : "hidden");
      return;
    }
    this.opened = performance.now();
    const { view, wire, reply } = first;
    first.reply = null;
    if (reply && query(this.view) === view) {
      this.wire = wire;
      this.read(wire, reply);
      return;
    }
    if (reply) wire.abort();
    this.reopen();
  }

  /** Until another view is watched. */
  stop() {
    this.wire?.abort();
    this.wire = null;
    this.view = {};
    this.last = null;
  }

  reopen() {
    this.wire?.abort();
    this.wire = new AbortController();
    this.read(this.wire);
  }

  check() {
    if (!this.wire || document.hidden || this.paused) return;
    if (this.late && this.isTime()) this.again();
    const now = performance.now();
    if (this.silence() < STALE_MS) return;
    if (!this.polls) this.onState("stale");
    if (now - this.polled >= STALE_MS) this.poll(this.wire);
  }

  /** The stream is silent: ask for the document, and open another stream if the server answers. @param {AbortController} wire */
  async poll(wire) {
    this.polled = performance.now();
    try {
      const signal = AbortSignal.any([wire.signal, AbortSignal.timeout(STALE_MS)]);
      const { full, at } = await (await ask(`look${query(this.view)}`, { signal })).json();
      if (wire !== this.wire || performance.now() - this.heard < STALE_MS) return;
      this.polls = true;
      this.keep(full, at);
      this.again();
      this.onState("polled");
      this.reopen();
    } catch {
      this.polls = false;
    }
  }

  isTime() {
    return this.every <= 1 || performance.now() - this.drawn >= this.every * 1000;
  }

  /** @param {AbortController} wire @param {Promise<Response>} [early] What was asked for already. */
  async read(wire, early) {
    while (!wire.signal.aborted) {
      try {
        await this.readOnce(wire, early ?? ask(`live${query(this.view)}`, { signal: wire.signal }));
      } catch (error) {
        if (wire.signal.aborted) return;
        if (error instanceof Refusal && [401, 403].includes(error.status)) {
          this.wire = null;
          this.onState(`refused ${error.message}`);
          return;
        }
      }
      if (wire.signal.aborted) return;
      early = undefined;
      if (!this.polls) this.onState("lost");
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }

  /** @param {AbortController} wire @param {Promise<Response>} asked */
  async readOnce(wire, asked) {
    const reply = await asked;
    const reader = /** @type {ReadableStream<Uint8Array>} */ (reply.body).getReader();
    const decoder = new TextDecoder();
    let rest = "";
    let document = {};
    for (;;) {
      const { done, value } = await reader.read();
      if (done || wire.signal.aborted) return;
      this.heard = performance.now();
      this.polls = false;
      const events = (rest + decoder.decode(value, { stream: true })).split("\n\n");
      rest = events.pop() ?? "";
      for (const event of events) {
        // How old the numbers are of which there is nothing new: the server may be too busy to look again.
        if (event.startsWith(": ")) this.holds = this.heard - (parseInt(event.slice(2), 10) || 0);
        if (!event.startsWith("data: ")) continue;
        const frame = /** @type {Frame} */ (JSON.parse(event.slice(6)));
        document = frame.full ?? merged(document, frame.patch);
        this.keep(document, frame.at);
        this.late = true;
      }
      if (this.isTime()) this.again();
      this.onState("live");
    }
  }
}
