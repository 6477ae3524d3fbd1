// Works one job over HTTP/2 in TLS, as a client on undici does. Arguments: URL, file of the CA.
// Prints what it saw as one JSON document.

import { readFileSync } from "node:fs";
import { Agent } from "undici";

const [url, caFile] = process.argv.slice(2);
const agent = new Agent({ allowH2: true, connect: { ca: readFileSync(caFile), servername: "localhost" } });

async function send(method, path, document) {
  const { statusCode, body } = await agent.request({
    origin: url,
    path,
    method,
    headers: document ? { "content-type": "application/json" } : {},
    body: document && JSON.stringify(document),
  });
  const text = await body.text();
  return { status: statusCode, document: text ? JSON.parse(text) : null };
}

let http2;

async function firstLine(path) {
  const { headers, body } = await agent.request({ origin: url, path, method: "GET" });
  // Over HTTP/1.1 a stream comes in chunks.
  http2 = headers["transfer-encoding"] === undefined;
  let text = "";
  for await (const chunk of body) {
    text += chunk;
    if (text.includes("\n")) return JSON.parse(text);
  }
  throw new Error("the stream ended");
}

const enqueued = await send("POST", "/jobs", { queue: "q", type: "t", payload: { n: 1 } });
const taken = await firstLine("/jobs/take");
const { status: acknowledged } = await send("POST", `/jobs/${taken.id}/success`);
const many = await Promise.all(
  Array.from({ length: 50 }, () => send("POST", "/jobs", { queue: "r", type: "t", payload: 0 })),
);
const { document: counted } = await send("GET", "/jobs/count?queue=r");
console.log(
  JSON.stringify({
    http2,
    enqueued: enqueued.status,
    same: taken.id === enqueued.document.id,
    acknowledged,
    statuses: [...new Set(many.map((reply) => reply.status))],
    counted: counted.count,
  }),
);
await agent.destroy();
