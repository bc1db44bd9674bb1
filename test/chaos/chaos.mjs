import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Clients } from './clients.mjs';
import { Cluster } from './cluster.mjs';
import { Releases } from './releases.mjs';
import { RunContext } from './run-context.mjs';
import { Scraper } from './scraper.mjs';

/** A run goes on for at most so much longer, until every kind has been made once. */
const LATER_MS = 60_000;
/** Drain, hooks, and some. */
const STOP_MS = 20_000;
/** Clients see what there is to see before they are stopped. */
const AFTERMATH_MS = 1_000;

/**
 * Runs a cluster under clients and faults.
 *
 * @param settings with `schedule`, the faults as they come; see schedule.mjs.
 * @param interrupted resolves when it is to end early.
 * @returns everything that was seen; judged by judge.mjs.
 */
export async function makeChaos(settings, interrupted, progress) {
  const directory = mkdtempSync(join(tmpdir(), 'nestjs-cluster-chaos-'));
  const releases = new Releases(directory);
  const cluster = new Cluster(settings, directory, releases.script);
  const scraper = new Scraper(cluster);
  const context = new RunContext(cluster, releases);
  const over = Promise.race([interrupted, cluster.exited.then(() => 'exited')]);
  const inTime = (waiting) =>
    Promise.race([waiting.catch(({ message }) => context.failed(message)), over]);
  let clients;
  try {
    await inTime(context.started());
    clients = new Clients(context.failures.length > 0 || cluster.exit ? undefined : cluster);
    const served = () => Object.values(clients.counts).every(({ success }) => success > 0);
    await inTime(context.eventually('every kind of client is served', served));
    const faults = await makeFaults(settings, context, clients, over, progress);
    await delay(AFTERMATH_MS);
    const diedEarly = cluster.exit;
    const endedBadly = await clients.stop();
    await scraper.stop();
    const exit = await cluster.stop(STOP_MS);
    const orphans = await cluster.orphans();
    return { context, cluster, clients, scraper, faults, diedEarly, endedBadly, exit, orphans };
  } finally {
    context.undoNow();
    clients?.destroy();
    await scraper.stop();
    await cluster.destroy();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Resolves with what was made, `{ name, parameters, at, stopped, recoveryMs, sample }`. */
async function makeFaults({ schedule, faults, seconds }, context, clients, over, progress) {
  const deadline = Date.now() + seconds * 1_000;
  const latest = deadline + LATER_MS;
  const made = [];
  let ended;
  void over.then(() => (ended = true));
  for (const { fault, parameters, pauseMs } of schedule) {
    await Promise.race([delay(pauseMs), over]);
    const complete = made.length >= faults.length;
    if (ended || Date.now() > (complete ? deadline : latest)) return made;
    const one = { name: fault.name, parameters, at: Date.now() };
    made.push(one);
    try {
      one.sample = await context.cluster.sample();
      one.stopped = await Promise.race([fault.inject(context, parameters), over]);
      context.undoNow();
      const harmless = Date.now();
      if (ended) return made;
      const recovered = context.until('every slot is ready again', ({ settled }) => settled);
      await Promise.race([recovered, over]);
      if (!ended) one.recoveryMs = Date.now() - harmless;
    } catch (error) {
      context.failed(`${fault.name} ${JSON.stringify(parameters)}: ${error.message}`);
    } finally {
      context.undoNow();
    }
    progress({ ...one, lost: clients.lost, left: deadline - Date.now() });
  }
  return made;
}
