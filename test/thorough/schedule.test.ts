import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { ONE_PROGRAM } from '../support/adapters.js';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { getJson } from '../support/http-client.js';
import { CONTROLLED, PrimaryControl } from '../support/primary-control.js';
import { scrape } from '../support/scrape.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

afterEach(stopAll);

const WORKERS = 2;
const KILLS = 2;
const AT_LEAST_MS = 6_500; // else a quick machine counts too few seconds

/** The fixture's log of its runs. */
class Runs {
  readonly path = join(temporaryDirectory(), 'runs');

  /** Seconds in which a job ran, once for each run. */
  of(job: string): number[] {
    const lines = readFileSync(this.path, { encoding: 'utf8', flag: 'a+' }).split('\n');
    return lines
      .map((line) => line.split(' '))
      .flatMap(([at, name]) => (name === job ? [Number(at)] : []));
  }
}

describe('scheduled jobs of a cluster', () => {
  it('run once, through a reload, kills, a hang and scaling', async () => {
    const runs = new Runs();
    const cluster = await ClusterProcess.start({
      program: ONE_PROGRAM,
      options: { workers: WORKERS, hangTimeoutMs: 3_000 },
      env: { ...behaviour('schedule'), ...CONTROLLED, TEST_RUNS: runs.path },
    });
    const primary = await PrimaryControl.of(cluster);
    const gone = new Set<number>();
    const leader = async (): Promise<number> => {
      for (;;) {
        const { leader: found, ready } = await primary.snapshot();
        if (found && ready === WORKERS && !gone.has(found.pid)) return found.pid;
        await delay(50);
      }
    };
    // The primary hears of it a moment later.
    const end = async (signal: NodeJS.Signals): Promise<void> => {
      const pid = await leader();
      gone.add(pid);
      process.kill(pid, signal);
    };
    await leader();
    await delay(1_100); // what is due from now on is counted
    const from = Math.floor(Date.now() / 1_000) + 1;

    // With the reason, which says what was wrong with which worker.
    expect(await primary.reload()).toMatchObject({ outcome: 'completed', reason: null });
    for (let kill = 0; kill < KILLS; kill += 1) await end('SIGKILL');
    await end('SIGSTOP');
    await cluster.event('worker-died', ({ cause }) => cause === 'hang');
    await leader();
    await primary.scale(1);
    await primary.scale(WORKERS);
    await leader();
    await delay(Math.max(0, from * 1_000 + AT_LEAST_MS - Date.now()));
    const to = Math.floor(Date.now() / 1_000);
    await delay((to + 1) * 1_000 - Date.now());

    const faults = KILLS + 1;
    const seconds = Array.from({ length: to - from }, (_, index) => from + index);
    expect(seconds.length).toBeGreaterThan(5);
    for (const job of ['tick', 'dynamic']) {
      const ran = runs.of(job).filter((at) => at >= from && at < to);
      expect(ran, job).toEqual([...new Set(ran)]);
      expect(seconds.length - ran.length, job).toBeLessThanOrEqual(faults);
    }
    expect(runs.of('once')).toHaveLength(1);
    expect(runs.of('everywhere').length).toBeGreaterThan(1.3 * seconds.length);
    const page = await scrape(cluster.url);
    expect(page.values('nestjs_cluster_leader').toSorted((a, b) => a - b)).toEqual([
      ...Array.from({ length: WORKERS - 1 }, () => 0),
      1,
    ]);
    const [failed] = page.values('nestjs_cluster_jobs_total', {
      job: 'Jobs.fails',
      outcome: 'failed',
    });
    expect(failed).toBeGreaterThan(0);

    // A leader that is blocked: the other worker leads long before the heartbeats tell.
    const before = await leader();
    for (let blocked = false; !blocked;) {
      const answer = getJson(cluster.url, '/schedule/block/2500').catch(() => undefined);
      blocked = await Promise.race([answer.then(() => false), delay(300, true)]);
    }
    const after = await eventually(
      'another leader',
      () => getJson<{ pid: number; isLeader: boolean }>(cluster.url, '/schedule/leader'),
      ({ body }) => body.isLeader && body.pid !== before,
    );
    expect((await primary.snapshot()).leader?.pid).toBe(after.body.pid);
  });
});
