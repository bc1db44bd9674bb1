import { describe, expect, it } from 'vitest';
import {
  DEFAULTS,
  type Load,
  meanWaitMs,
  planCapacity,
  type Room,
} from '../../../../src/tools/plan/capacity-plan.js';
import { readDocument, rowsOf, sectionOf } from '../../../support/documents.js';
import { linesOf } from '../../../../src/tools/plan/report.js';

const input = (given: Partial<Load & Room>) => ({ rps: 1_000, ...DEFAULTS, ...given });
const planOf = (given: Partial<Load & Room>) => planCapacity(input(given), input(given));

describe('the plan of a load', () => {
  it('has as many pods as keep their cores below the utilization', () => {
    // 20,000 × 0.2 ms are 4 cores; at 0.7 they take 5.7, which three pods of two have.
    expect(planOf({ rps: 20_000, cpuMs: 0.2, waitMs: 40 })).toMatchObject({
      pods: 3,
      workers: 2,
      threads: 0,
      busyCores: 4,
      eventLoopUtilization: 4 / 6,
    });
    expect(planOf({ rps: 20_000, cpuMs: 0.2, utilization: 0.5 }).pods).toBe(4);
    expect(planOf({ rps: 20_000, cpuMs: 0.2, coresPerPod: 8 }).pods).toBe(1);
  });

  it('has no more workers than event loops that are needed', () => {
    expect(planOf({ rps: 100, cpuMs: 0.2, waitMs: 500, coresPerPod: 4 }).workers).toBe(1);
    expect(planOf({ rps: 1_400, cpuMs: 1 })).toMatchObject({ pods: 1, workers: 2 });
  });

  it('needs no pod more for what is exactly full', () => {
    expect(planOf({ rps: 4_200, cpuMs: 1, utilization: 0.7 }).pods).toBe(3);
  });

  it('gives the computing of offloaded calls to threads, and leaves the event loop their way', () => {
    const plan = planOf({
      rps: 500,
      cpuMs: 0.15,
      offloadMs: 20,
      offloadShare: 0.2,
      coresPerPod: 4,
    });
    // 0.16 ms for each request on the loop, 2 cores in threads
    expect(plan.busyCores).toBeCloseTo(2.08);
    expect(plan).toMatchObject({ pods: 1, workers: 1, threads: 3 });
    expect(plan.eventLoopUtilization).toBeCloseTo(0.08);
    expect(plan.threadUtilization).toBeCloseTo(2 / 3);
  });

  it('offloads nothing where no call computes', () => {
    expect(planOf({ offloadShare: 1, offloadMs: 0 })).toMatchObject({
      threads: 0,
      threadUtilization: 0,
      busyCores: 0.04,
    });
  });

  it("counts requests in flight by Little's law", () => {
    const plan = planOf({ rps: 20_000, cpuMs: 0.2, waitMs: 40 });
    // 0.2 ms of CPU, and twice that in the queue of an event loop that is busy for 2/3 of the time
    expect(plan.queueMs).toBeCloseTo(0.4);
    expect(plan.responseMs).toBeCloseTo(40.6);
    expect(plan.inFlight).toBeCloseTo(812);
    expect(plan.waitingPerWorker).toBeCloseTo(800 / 6);
  });

  it('has memory for the primary, for workers and for their threads', () => {
    expect(planOf({ rps: 20_000, cpuMs: 0.2 }).memoryMb).toBe(68 + 2 * 135);
    expect(planOf({ rps: 20, offloadMs: 20, memoryPerWorkerMb: 200 }).memoryMb).toBe(68 + 240);
  });

  it('counts connections with a pod more for a rollout and a worker more for a reload', () => {
    expect(planOf({ rps: 20_000, cpuMs: 0.2, poolSize: 5 }).databaseConnections).toBe(5 * 3 * 4);
  });

  it.each([
    ['cores', { rps: 1_000, cpuMs: 1, offloadMs: 0.5, coresPerPod: 2 }],
    ['event loops', { rps: 100, cpuMs: 1, coresPerPod: 8 }],
    ['threads', { rps: 100, cpuMs: 0.01, offloadMs: 5, coresPerPod: 8 }],
  ])('is full as soon as the first of them is: %s', (_, given) => {
    const plan = planOf(given);
    const full = planCapacity({ ...input(given), rps: plan.limitRps }, input(given));
    const cores = full.busyCores / (plan.pods * given.coresPerPod);
    const loops = (full.eventLoopUtilization * full.pods * full.workers) / plan.pods / plan.workers;
    const threads =
      plan.threads === 0
        ? 0
        : (full.threadUtilization * full.pods * full.workers * full.threads) /
          (plan.pods * plan.workers * plan.threads);
    expect(Math.max(cores, loops, threads)).toBeCloseTo(1);
  });
});

describe('the reference of the command plan', () => {
  const rows = rowsOf(sectionOf(readDocument('docs/reference/command-line.md'), 'plan'));

  it('tells every default', () => {
    const documented = rows
      .filter(([option = '', value]) => option.startsWith('`--') && Number(value) >= 0)
      .map(([option, value]) => [/--([\w-]+)/.exec(option!)![1], Number(value)]);
    const kebab = (name: string) => name.replaceAll(/[A-Z]/g, (c) => `-${c.toLowerCase()}`);
    expect(documented).toEqual(
      Object.entries(DEFAULTS).map(([name, value]) => [kebab(name), value]),
    );
  });
});

describe('the wait for a server', () => {
  it.each([
    [1, 0.5, 10],
    [1, 0.9, 90],
    // Erlang's own table: of two servers, each busy half of the time, a third of the callers waits.
    [2, 0.5, 10 / 3],
    [4, 0, 0],
  ])('of %d, each busy for %d of the time, is %d ms', (servers, utilization, expected) => {
    expect(meanWaitMs(10, servers, utilization)).toBeCloseTo(expected);
  });

  it('is none where there is no server to wait for', () => {
    expect(meanWaitMs(10, 0, 0)).toBe(0);
  });
});

describe('the page of a plan', () => {
  const linesFor = (given: Partial<Load & Room>, assumed: string[] = []) =>
    linesOf(planOf(given), input(given), assumed);

  it('has a table, its reasons, and what to set', () => {
    expect(linesFor({ rps: 20_000, cpuMs: 0.2, waitMs: 40, poolSize: 100 })).toEqual([
      '                      each pod  in all',
      'pods                                 3',
      'workers                      2       6',
      'threads                      0       0',
      'requests/s                6667   20000',
      'CPU cores busy            1.33    4.00',
      'memory MB                  338    1014',
      'requests in flight       270.7   812.0',
      'database connections       300    1200',
      '',
      'An answer takes 40.60 ms on average, 0.40 ms of it in queues. The event loops are busy for 67 % of the time.',
      'Everything is full at 30000 requests a second, 1.50 times the load.',
      'With a pod less the load is too much.',
      'The database connections are those of a rollout, with a pod more, and of a reload, with a worker more in each.',
      'In each worker 133.3 requests wait at a time. If all of that is the database, a pool of 100 is too small: they queue for it.',
      'CLUSTER_WORKERS=2',
    ]);
  });

  it('says what was assumed, and how many threads to set', () => {
    const lines = linesFor({ rps: 100, offloadMs: 20 }, ['--cpu-ms 0.04']);
    expect(lines.slice(-3)).toEqual([
      'Assumed: --cpu-ms 0.04.',
      'CLUSTER_WORKERS=1',
      'CLUSTER_THREADS=2',
    ]);
  });

  it('says what is left without a pod', () => {
    const without = (given: Partial<Load & Room>) =>
      linesFor(given).find((line) => /pod less|One pod/.test(line));
    expect(without({ rps: 100 })).toContain('One pod is enough');
    expect(without({ rps: 10_000, cpuMs: 1 })).toBe(
      'With a pod less the cores are busy for 71 % of the time.',
    );
  });

  it('leaves out the pool where it is large enough', () => {
    expect(linesFor({ rps: 100, waitMs: 40 }).join('\n')).not.toContain('too small');
  });
});
