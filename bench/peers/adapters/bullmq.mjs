// BullMQ, on Redis and on PostgreSQL.

import { createRequire } from 'node:module'
import { TRIES, run } from '../harness.mjs'

// The packages are not beside this file: PEERS_MODULES says where.
const bullmq = createRequire(process.env.PEERS_MODULES)('bullmq')
const { address } = JSON.parse(process.env.PEERS_SITE)
const onPostgresql = address.startsWith('postgresql:')
const { Queue, QueueEvents, Worker } = onPostgresql
  ? bullmq.withBackend(bullmq.createPostgresBackend)
  : bullmq

const connection = () => {
  if (onPostgresql) return { connectionString: address, migrate: true }
  const { hostname, port } = new URL(address)
  return { host: hostname, port: Number(port), maxRetriesPerRequest: null }
}

async function connect (site) {
  const queue = new Queue('bench', {
    connection: connection(),
    defaultJobOptions: {
      // A caller that waits finds a job by its record, which must outlive the job.
      removeOnComplete: site.results ? { count: 1000 } : true,
      removeOnFail: true,
      ...(site.failing ? { attempts: TRIES } : {})
    }
  })
  await queue.waitUntilReady()
  const events = site.results ? new QueueEvents('bench', { connection: connection() }) : null
  await events?.waitUntilReady()
  const options = delay => (delay ? { delay: Math.round(delay * 1000) } : {})
  return {
    enqueue: (data, delay) => queue.add('noop', data, options(delay)),
    enqueueMany: (jobs, delay) =>
      queue.addBulk(jobs.map(data => ({ name: 'noop', data, opts: options(delay) }))),
    call: async data => (await queue.add('noop', data)).waitUntilFinished(events, 30000),
    close: async () => {
      await events?.close()
      await queue.close()
    }
  }
}

async function work (site, handle) {
  const worker = new Worker('bench', job => handle(job.data), {
    connection: connection(),
    concurrency: site.concurrency
  })
  await worker.waitUntilReady()
}

await run({ connect, work })
