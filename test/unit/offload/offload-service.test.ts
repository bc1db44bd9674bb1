import 'reflect-metadata';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Metric } from 'prom-client';
import { describe, expect, it, vi } from 'vitest';
import {
  ClusterConfigurationError,
  ClusterUncloneableError,
} from '../../../src/contract/errors/errors.js';
import {
  type ClusterModuleOptions,
  resolveModuleOptions,
} from '../../../src/contract/options/module.js';
import { availableCores } from '../../../src/contract/process/machine.js';
import type { ClusterLink } from '../../../src/contract/snapshot/types.js';
import { CpuBound, definitionsOf } from '../../../src/offload/cpu-bound.decorator.js';
import {
  TaskAbortedException,
  TaskRejectedException,
} from '../../../src/offload/offload.exceptions.js';
import type { OffloadExplorer } from '../../../src/offload/offload.explorer.js';
import { Offload, threadsFor } from '../../../src/offload/offload.service.js';
import type { RemoteRunner, RemoteSituation } from '../../../src/offload/run/remote-runner.js';
import type { Submitter } from '../../../src/offload/run/runner.interface.js';

class Work {
  readonly ends: ((value: unknown) => void)[] = [];

  /** Ends when the test ends it. */
  @CpuBound()
  async count(): Promise<unknown> {
    return new Promise((end) => this.ends.push(end));
  }

  @CpuBound({ name: 'double' })
  async twice(n: number): Promise<number> {
    return 2 * n;
  }

  @CpuBound()
  run(body: string, ...args: unknown[]): unknown {
    return bodies[body]!(...(args as never[]));
  }

  @CpuBound({ queue: 'reports' })
  remote(): unknown {
    return undefined;
  }
}

/** Functions cannot be arguments. */
const bodies: Record<string, (...args: never[]) => unknown> = {};

type Explored = ReturnType<OffloadExplorer['explore']>;

interface Setup extends Partial<Explored> {
  readonly options?: ClusterModuleOptions;
  /** `CLUSTER_OFFLOAD`. Default `inline`. */
  readonly mode?: string;
  /** The response that waits for the calls. */
  readonly waiting?: ServerResponse;
  readonly submit?: Submitter['submit'];
}

async function start({ options = {}, mode = 'inline', waiting, submit, ...about }: Setup = {}) {
  const instance = new Work();
  const found = definitionsOf(Work.prototype).map((definition) => ({
    name: definition.options.name ?? `Work.${definition.method}`,
    definition,
    instance,
    injected: false,
  }));
  const onDrainTasks = vi.fn<ClusterLink['onDrainTasks']>();
  const followScopes = vi.fn<ClusterLink['followScopes']>();
  const provideThreads = vi.fn<ClusterLink['provideThreads']>(() => true);
  const link = {
    workers: 2,
    bootstrapped: false,
    identity: { slot: 1, pid: 1, generation: 0 },
    onDrainTasks,
    followScopes,
    provideThreads,
    scope: { waiting },
    watchClient: (watched: ServerResponse, gone: () => void) => {
      if (watched === waiting) gone();
      return () => {};
    },
  } as unknown as ClusterLink;
  let situation: RemoteSituation | undefined;
  const remote = { start: async (given: RemoteSituation) => void (situation = given), submit };
  const offload = new Offload(
    resolveModuleOptions(options, { CLUSTER_OFFLOAD: mode }),
    undefined,
    link,
    { explore: () => ({ found, refusals: [], ...about }) } as unknown as OffloadExplorer,
    { ...remote, close: async () => {} } as unknown as RemoteRunner,
  );
  await offload.start();
  const pending = () => onDrainTasks.mock.calls[0]![0](Infinity);
  return { offload, instance, followScopes, provideThreads, pending, situation };
}

describe('the threads of a process', () => {
  it.each([
    [8, [3, 3, 2]],
    [2, [1, 1, 1, 1]],
  ])('of %i cores are %j in the workers', (cores, expected) => {
    const each = expected.map((_, slot) => threadsFor(cores, expected.length, slot));
    expect(each).toEqual(expected);
  });

  it('are for its slot, or what the options say', async () => {
    const threads = async (options?: ClusterModuleOptions) =>
      (await start({ options })).situation!.threads;
    expect(await threads()).toBe(threadsFor(availableCores(), 2, 1));
    expect(await threads({ offload: { threads: 3 } })).toBe(3);
  });
});

it('the threads are left to the process, which decides when they are verified', async () => {
  const { offload, provideThreads } = await start({ mode: 'threads' });
  expect(provideThreads).toHaveBeenCalledOnce();
  expect(offload.snapshot().threads).toBe(0);
  await offload.close();
});

it('an app that has nothing to offload is not watched, measured or counted', async () => {
  const { offload, followScopes } = await start({ found: [] });
  expect(offload.metrics).toEqual({ all: [], labelled: [] });
  expect(offload.snapshot()).toEqual({ threads: 0, running: 0, queueSize: 0 });
  await offload.close();
  expect(followScopes).not.toHaveBeenCalled();
});

it('an app that cannot be offloaded does not start, with all reasons in one message', async () => {
  const refused = start({ refusals: ['A.a takes @Req()', 'B.b is inherited'] });
  await expect(refused).rejects.toThrow(ClusterConfigurationError);
  await expect(refused).rejects.toThrow(
    '@CpuBound() cannot work here: A.a takes @Req() | B.b is inherited',
  );
});

describe('calls on the event loop', () => {
  it('run immediately, are counted until they end, and close() does not end them', async () => {
    const { offload, instance, pending } = await start();
    const calls = [instance.count(), instance.count()];
    await new Promise(setImmediate);
    expect(offload.snapshot()).toEqual({ threads: 0, running: 2, queueSize: 0 });
    expect(pending()).toBe(true);
    await offload.close();
    for (const end of instance.ends) end('a');
    expect(await Promise.all(calls)).toEqual(['a', 'a']);
    expect(pending()).toBe(false);
  });

  it('are measured, unless metrics are off', async () => {
    const { offload, instance } = await start();
    await instance.twice(1);
    bodies['fails'] = () => Promise.reject(new RangeError('x'));
    await expect(instance.run('fails')).rejects.toThrow(RangeError);
    const { all, labelled = [] } = offload.metrics;
    expect([all.length, labelled.length]).toEqual([3, 2]);
    const counted = (await (all[0] as Metric).get()).values;
    for (const labels of [
      { task: 'double', outcome: 'completed' },
      { task: 'Work.run', outcome: 'failed' },
    ]) {
      expect(counted).toContainEqual({ labels, value: 1 });
    }
    const { metrics } = (await start({ options: { metrics: false } })).offload;
    expect(metrics).toEqual({ all: [], labelled: [] });
  });

  it('get and give copies, with Buffers as Buffers', async () => {
    const given = { rows: [1], image: Buffer.from('x') };
    const kept = { cat: { name: 'Tom' }, image: Buffer.from('y') };
    let seen: unknown;
    bodies['change'] = (own: typeof given) => {
      own.rows.push(2);
      seen = own;
      return kept;
    };
    const { instance } = await start();
    const result = (await instance.run('change', given)) as typeof kept;
    expect([seen, given.rows]).toEqual([{ rows: [1, 2], image: Buffer.from('x') }, [1]]);
    expect(result).toEqual(kept);
    expect(result.cat).not.toBe(kept.cat);
    expect(Buffer.isBuffer(result.image)).toBe(true);
  });

  it('are refused if a value cannot be copied, and such arguments run nothing', async () => {
    let runs = 0;
    bodies['functions'] = () => ({ runs: (runs += 1), f: () => 1 });
    const { instance } = await start();
    await expect(instance.run('functions', () => 1)).rejects.toThrow(ClusterUncloneableError);
    expect(runs).toBe(0);
    await expect(instance.run('functions')).rejects.toThrow(ClusterUncloneableError);
  });
});

describe('the client that waits for a call', () => {
  const response = () => new ServerResponse(new IncomingMessage(new Socket()));

  /** A response that waits for a call that fails. */
  async function refuse(error: Error = new TaskRejectedException('Work.remote', 'queue-full')) {
    const waiting = response();
    const { instance } = await start({ waiting, submit: () => Promise.reject(error) });
    await expect(instance.remote()).rejects.toBe(error);
    return waiting;
  }

  it.each([response(), undefined])('is watched if there is one: %o', async (waiting) => {
    const events: unknown[] = [];
    const submit: Submitter['submit'] = async (_task, _args, _trace, watch) => {
      watch?.(() => events.push('gone'));
    };
    await (await start({ waiting, submit })).instance.remote();
    expect(events).toEqual(waiting ? ['gone'] : []);
  });

  it.each([
    [503, '1'],
    [429, undefined],
    [504, undefined],
  ])('of a refused call gets with %i Retry-After: %s', async (status, expected) => {
    const waiting = await refuse();
    expect(waiting.writeHead(status, 'Busy', { a: '1' })).toBe(waiting);
    expect(waiting.getHeader('Retry-After')).toBe(expected);
    expect([waiting.statusCode, waiting.statusMessage]).toEqual([status, 'Busy']);
  });

  it('gets no Retry-After after another failure, or in the place of that of the app', async () => {
    const aborted = await refuse(new TaskAbortedException('Work.remote'));
    expect(aborted.writeHead(503).hasHeader('Retry-After')).toBe(false);
    const refused = await refuse();
    refused.setHeader('Retry-After', '60');
    expect(refused.writeHead(503).getHeader('Retry-After')).toBe('60');
  });
});
