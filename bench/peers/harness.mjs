// The protocol of wire.py, tally.py, produce.py and work.py for peers that run on Node.
//
// An adapter calls run({connect, work}): connect(site) gives a client with enqueue(job, delay) and
// close(), and where the peer can enqueueMany(jobs, delay) and call(job); delays are in seconds.
// work(site, handle) starts the worker.

import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

export const TRIES = 11
const REPORT_EVERY_MS = 20
const MIN_TIMER_MS = 1

// The clock of Python's time.perf_counter(), in seconds.
const now = () => Number(process.hrtime.bigint()) / 1e9

class Deliberate extends Error {}

function tally (site) {
  let count = 0
  let told = 0
  let first = 0
  let last = 0
  let late = []
  setInterval(() => {
    if (count === told) return
    told = count
    appendFileSync(site.report, JSON.stringify({ pid: process.pid, count, first, last, late }) + '\n')
    late = []
  }, REPORT_EVERY_MS)
  return at => {
    last = now()
    if (count++ === 0) first = last
    if (site.detail) late.push(last - at)
  }
}

function handler (site) {
  const hit = tally(site)
  return async payload => {
    hit(payload.at)
    if (site.failing) throw new Deliberate('deliberate')
    return site.results ? { n: payload.n } : null
  }
}

const LONG_AGO = -1e9

function job (n, at, order) {
  if (order.flood) return { n, user: 'flood', at: LONG_AGO }
  const user = order.users ? n % order.users : n
  return { n, user: `u-${String(user).padStart(6, '0')}`, at }
}

async function produce (order, client) {
  const cpuBefore = process.cpuUsage()
  const began = now()
  const due = order.delay ? began + order.delay : 0
  const times = []
  let given = 0
  let jobs = 0

  async function caller () {
    while (given < order.jobs && now() - began <= order.seconds) {
      const from = given
      const upto = Math.min(from + order.batch, order.jobs)
      given = upto
      const at = due || (order.rate ? began + from / order.rate : now())
      // A timer of Node fires up to a millisecond early or late: the rest is waited for in turns.
      while (order.rate && at - now() > 0) {
        const left = (at - now()) * 1000
        if (left > MIN_TIMER_MS * 2) await sleep(left - MIN_TIMER_MS)
        else await new Promise(setImmediate)
      }
      const batch = []
      for (let n = from; n < upto; n++) batch.push(job(n, at, order))
      const left = due ? Math.max(0, due - now()) : 0
      const sent = now()
      if (order.call) await client.call(batch[0])
      else if (order.batch > 1) await client.enqueueMany(batch, left)
      else await client.enqueue(batch[0], left)
      if (order.call) times.push(now() - sent)
      jobs += batch.length
    }
  }

  await Promise.all(Array.from({ length: order.callers }, caller))
  const seconds = now() - began
  const used = process.cpuUsage(cpuBefore)
  return { jobs, began, seconds, cpu: (used.user + used.system) / 1e6, times }
}

export async function run ({ connect, work }) {
  const site = JSON.parse(process.env.PEERS_SITE)
  const [role, order] = process.argv.slice(2)
  if (role === 'work') return work(site, handler(site))
  const client = await connect(site)
  console.log(JSON.stringify(await produce(JSON.parse(order), client)))
  await client.close()
  process.exit(0)
}
