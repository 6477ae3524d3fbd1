// @platformatic/job-queue with its file storage.

import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { TRIES, run } from '../harness.mjs'

// The packages are not beside this file: PEERS_MODULES says where. This one is a module only.
const from = createRequire(process.env.PEERS_MODULES)
const { FileStorage, Queue } = await import(pathToFileURL(from.resolve('@platformatic/job-queue')))

const open = (site, options) =>
  new Queue({ storage: new FileStorage({ basePath: join(site.directory, 'jobs') }), ...options })

async function connect (site) {
  const queue = open(site, {})
  await queue.start()
  const options = site.failing ? { maxAttempts: TRIES } : {}
  return {
    enqueue: data => queue.enqueue(`job-${data.n}-${data.at}`, data, options),
    call: data => queue.enqueueAndWait(`job-${data.n}-${data.at}`, data, { timeout: 30000 }),
    close: () => queue.stop()
  }
}

async function work (site, handle) {
  const queue = open(site, { concurrency: site.concurrency })
  queue.execute(job => handle(job.payload))
  await queue.start()
}

await run({ connect, work })
