import 'reflect-metadata';
import { type INestApplication, Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { AsyncResource } from 'node:async_hooks';
import type { Metric } from 'prom-client';
import { afterEach, describe, expect, it, vi, onTestFinished } from 'vitest';
import { ClusterModule } from '../../../src/module/cluster.module.js';
import { ClusterConfigurationError } from '../../../src/contract/errors/index.js';
import { CpuBound, Offload, type OffloadExplorer } from '../../../src/offload/index.js';
import { threadsFor } from '../../../src/offload/offload.service.js';
import { definitionsOf } from '../../../src/offload/cpu-bound.metadata.js';
import {
  TaskAbortedException,
  TaskRejectedException,
} from '../../../src/offload/offload.exceptions.js';
import type { Exploration } from '../../../src/offload/offload.explorer.js';
import {
  type ClusterModuleOptions,
  resolveModuleOptions,
} from '../../../src/contract/options/module.js';
import type { ClusterLink, RequestScope } from '../../../src/contract/snapshot/index.js';

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

async function start(
  options: ClusterModuleOptions = {},
  about: Partial<Exploration> = {},
  instance = new Slow(),
  bootstrapped = false,
) {
  const told: unknown[] = [];
  const found = definitionsOf(Slow.prototype).map((definition) => ({
    name: definition.options.name ?? `Slow.${definition.method}`,
    definition,
    className: 'Slow',
    instance,
    injected: false,
  }));
  let hasTasksFrom = (_before: number) => false;
  let follows = false;
  let scope: RequestScope | undefined;
  const watched = new EventEmitter();
  const link = {
    workers: 1,
    bootstrapped,
    warn: (...warning: unknown[]) => void told.push(warning),
    identity: { slot: 4, pid: 1, generation: 0 },
    provideTasks: (has: (before: number) => boolean) => (hasTasksFrom = has),
    followScopes: (on: boolean) => (follows = on),
    get scope() {
      return scope;
    },
    watchClient: (response: ServerResponse, gone: () => void) => {
      watched.on('gone', (each) => each === response && gone());
      return () => {};
    },
  } as unknown as ClusterLink;
  const resolved = resolveModuleOptions(
    { ...options, offload: { threads: 1, ...options.offload } },
    { CLUSTER_OFFLOAD: 'inline' },
  );
  const explorer = {
    explore: () => ({ found, refusals: [], ...about }),
  } as unknown as OffloadExplorer;
  const offload = new Offload(resolved, undefined, link, explorer);
  await offload.start();
  return {
    offload,
    instance,
    /** The warnings that were sent to the primary's log. */
    told,
    pending: () => hasTasksFrom(Infinity),
    observes: () => follows,
    /** Does something for a request. */
    serve: <T>(response: Partial<ServerResponse>, handle: () => T): T =>
      new AsyncResource('request').runInAsyncScope(() => {
        scope = { waiting: response as ServerResponse };
        return handle();
      }),
    leave: (response: Partial<ServerResponse>) => watched.emit('gone', response),
  };
}

function response() {
  const headers: Record<string, string> = {};
  return {
    headers,
    hasHeader: (name: string) => name in headers,
    setHeader: ((name: string, value: string) => void (headers[name] = value)) as never,
    writeHead: (() => {}) as unknown as ServerResponse['writeHead'],
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
    expect(offload.snapshot()).toEqual({
      threads: 0,
      running: 0,
      queueSize: 0,
      fullForMs: 0,
      unavailable: false,
    });
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

  it('wait for each other, and are known by number', async () => {
    const { offload, instance, pending } = await start();
    const [first, second] = [instance.count(), instance.count()];
    await turn();
    expect(instance.ends).toHaveLength(1);
    expect(offload.snapshot()).toMatchObject({
      threads: 0,
      running: 1,
      queueSize: 1,
      unavailable: false,
    });
    expect(pending()).toBe(true);
    instance.ends[0]!('a');
    expect(await first).toBe('a');
    await turn();
    instance.ends[1]!('b');
    expect(await second).toBe('b');
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

  it('are refused beyond the queue, and their client is told when to come again', async () => {
    const { instance, serve, offload } = await start({ offload: { maxQueue: 1 } });
    const calls = [instance.count(1), instance.count(2)];
    const told = response();
    const refused = serve(told, () => instance.count(3));
    await expect(refused).rejects.toThrow(TaskRejectedException);
    told.writeHead(503);
    expect(told.headers).toEqual({ 'Retry-After': '1' });
    await expect(instance.count(5)).rejects.toThrow(TaskRejectedException);
    await offload.close();
    await Promise.allSettled(calls);
  });

  it('tell nobody to come again for other failures', async () => {
    const { instance, serve } = await start();
    const told = response();
    await expect(serve(told, () => instance.count(() => 1))).rejects.toThrow('argument 1');
    told.writeHead(503);
    expect(told.headers).toEqual({});
  });

  it('are not begun for a client that is gone', async () => {
    const { instance, serve, leave, pending, offload } = await start();
    const first = instance.count();
    const left = response();
    const second = serve(left, () => instance.count());
    leave(response());
    expect(offload.snapshot().queueSize).toBe(1);
    leave(left);
    await expect(second).rejects.toThrow(TaskAbortedException);
    expect([offload.snapshot().queueSize, pending()]).toEqual([0, true]);
    await offload.close();
    await expect(first).rejects.toThrow(TaskAbortedException);
  });

  it('are refused once the app is closed', async () => {
    const { instance, offload } = await start();
    await offload.close();
    await expect(instance.twice(1)).rejects.toMatchObject({ reason: 'closing' });
    await offload.close();
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
      expect(app.get(Offload).snapshot()).toMatchObject({ threads: 0, unavailable: false });
    } finally {
      await app?.close();
    }
  });
});
