// The first page.

export { overview } from "./queues.js";
