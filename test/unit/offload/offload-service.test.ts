import 'reflect-metadata';
import { type INestApplication, Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { Metric } from 'prom-client';
import { afterEach, describe, expect, it, vi, onTestFinished } from 'vitest';
import { ClusterModule } from '../../../src/module/cluster.module.js';
import { ClusterConfigurationError } from '../../../src/contract/errors/index.js';
import { CpuBound, Offload, type OffloadExplorer } from '../../../src/offload/index.js';
import { threadsFor } from '../../../src/offload/offload.service.js';
import { definitionsOf } from '../../../src/offload/cpu-bound.metadata.js';
import type { Exploration } from '../../../src/offload/offload.explorer.js';
import {
  type ClusterModuleOptions,
  resolveModuleOptions,
} from '../../../src/contract/options/module.js';
import type { ClusterLink } from '../../../src/contract/snapshot/index.js';

afterEach(() => vi.restoreAllMocks());

/** Ends when it is told to. */
class Slow {
  readonly ends: ((value: unknown) => void)[] = [];

  @CpuBound({ timeoutMs: 5_000 })
  async count(..._args: unknown[]): Promise<unknown> {
    return new Promise((end) => this.ends.push(end));
  }

  @CpuBound({ name: 'double' })
  async twice(n: number): Promise<number> {
    return 2 * n;
  }
}

async function start(options: ClusterModuleOptions = {}, about: Partial<Exploration> = {}) {
  const instance = new Slow();
  const found = definitionsOf(Slow.prototype).map((definition) => ({
    name: definition.options.name ?? `Slow.${definition.method}`,
    definition,
    className: 'Slow',
    instance,
    injected: false,
  }));
  let hasTasksFrom = (_before: number) => false;
  let follows = false;
  const link = {
    workers: 1,
    bootstrapped: false,
    identity: { slot: 4, pid: 1, generation: 0 },
    provideTasks: (has: (before: number) => boolean) => (hasTasksFrom = has),
    followScopes: (on: boolean) => (follows = on),
    scope: undefined,
  } as unknown as ClusterLink;
  const resolved = resolveModuleOptions(options, { CLUSTER_OFFLOAD: 'inline' });
  const explorer = {
    explore: () => ({ found, refusals: [], ...about }),
  } as unknown as OffloadExplorer;
  const offload = new Offload(resolved, undefined, link, explorer);
  await offload.start();
  return {
    offload,
    instance,
    pending: () => hasTasksFrom(Infinity),
    observes: () => follows,
  };
}

const turn = () => new Promise(setImmediate);

describe('threads of a process', () => {
  it.each([
    [8, 1, [8]],
    [8, 2, [4, 4]],
    [8, 8, [1, 1, 1, 1, 1, 1, 1, 1]],
    [8, 3, [3, 3, 2]],
    [2, 4, [1, 1, 1, 1]],
    [1, 1, [1]],
    [10, 4, [3, 3, 2, 2]],
  ])('of %i cores with %i workers are %j', (cores, workers, expected) => {
    expect(expected.map((_, slot) => threadsFor(cores, workers, slot))).toEqual(expected);
  });

  it('are one for each core in all, and at least one for each worker', () => {
    for (let cores = 1; cores <= 64; cores += 1) {
      for (let workers = 1; workers <= 64; workers += 1) {
        const each = Array.from({ length: workers }, (_, slot) => threadsFor(cores, workers, slot));
        expect(Math.min(...each)).toBeGreaterThanOrEqual(1);
        expect(Math.max(...each) - Math.min(...each)).toBeLessThanOrEqual(1);
        expect(each.reduce((sum, n) => sum + n)).toBe(Math.max(cores, workers));
      }
    }
  });

  it('are one for a worker that was added beyond them', () => {
    expect(threadsFor(4, 4, 9)).toBe(1);
  });
});

describe('an app that has nothing to offload', () => {
  it('has nothing watched, measured or counted', async () => {
    const { offload, observes } = await start({}, { found: [] });
    expect(observes()).toBe(false);
    expect(offload.metrics).toEqual({ all: [], labelled: [] });
    expect(offload.snapshot()).toEqual({ threads: 0, running: 0, queueSize: 0 });
    await offload.close();
  });
});

describe('an app that cannot be offloaded', () => {
  it('does not start: all reasons are in one message', async () => {
    const refused = start({}, { refusals: ['A.a takes @Req()', 'B.b is inherited'] });
    await expect(refused).rejects.toThrow(ClusterConfigurationError);
    await expect(refused).rejects.toThrow(
      '@CpuBound() cannot work here: A.a takes @Req() | B.b is inherited',
    );
  });
});

describe('@CpuBound() methods on the event loop', () => {
  it('answer their callers', async () => {
    const { instance } = await start();
    expect(await instance.twice(4)).toBe(8);
  });

  it('run at once, and are known by number', async () => {
    const { offload, instance, pending } = await start();
    const calls = [instance.count(), instance.count()];
    await turn();
    expect(offload.snapshot()).toEqual({ threads: 0, running: 2, queueSize: 0 });
    expect(pending()).toBe(true);
    for (const end of instance.ends) end('a');
    expect(await Promise.all(calls)).toEqual(['a', 'a']);
    expect(pending()).toBe(false);
  });

  it('are measured, unless nothing is', async () => {
    const { offload, instance } = await start();
    await instance.twice(1);
    const { all, labelled = [] } = offload.metrics;
    expect([all.length, labelled.length]).toEqual([3, 2]);
    const counted = (await (all[0] as Metric).get()).values;
    expect(counted).toContainEqual({ labels: { task: 'double', outcome: 'completed' }, value: 1 });
    const { metrics } = (await start({ metrics: false })).offload;
    expect(metrics).toEqual({ all: [], labelled: [] });
  });
});

describe('an app in a test, with vitest, inline', () => {
  @Injectable()
  class Tools {
    readonly factor = 3;
  }

  @Injectable()
  class Cats {
    constructor(readonly tools: Tools) {}

    @CpuBound()
    async count(n: number): Promise<number> {
      return n * this.tools.factor;
    }
  }

  it('starts, and its methods run on its own instances', async () => {
    vi.stubEnv('CLUSTER_OFFLOAD', 'inline');
    onTestFinished(() => void vi.unstubAllEnvs());
    @Module({
      imports: [
        ClusterModule.forRoot({
          health: false,
          metrics: false,
          offload: { module: Tools },
        }),
      ],
      providers: [Tools, Cats],
    })
    class App {}
    let app: INestApplication | undefined;
    try {
      app = await NestFactory.create(App, { logger: false, abortOnError: false });
      await app.init();
      expect(await app.get(Cats).count(2)).toBe(6);
      expect(app.get(Offload).snapshot()).toMatchObject({ threads: 0 });
    } finally {
      await app?.close();
    }
  });
});
