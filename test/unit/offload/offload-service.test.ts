import 'reflect-metadata';
import type { Metric } from 'prom-client';
import { describe, expect, it, vi } from 'vitest';
import { ClusterConfigurationError } from '../../../src/contract/errors/index.js';
import {
  type ClusterModuleOptions,
  resolveModuleOptions,
} from '../../../src/contract/options/module.js';
import { availableCores } from '../../../src/contract/process/machine.js';
import type { ClusterLink } from '../../../src/contract/snapshot/index.js';
import { definitionsOf } from '../../../src/offload/cpu-bound.decorator.js';
import { CpuBound, Offload, type OffloadExplorer } from '../../../src/offload/index.js';
import { threadsFor } from '../../../src/offload/offload.service.js';
import type { RemoteRunner, RemoteSituation } from '../../../src/offload/run/remote-runner.js';

/** Its calls end when the test ends them. */
class Slow {
  readonly ends: ((value: unknown) => void)[] = [];

  @CpuBound({ timeoutMs: 5_000 })
  async count(): Promise<unknown> {
    return new Promise((end) => this.ends.push(end));
  }

  @CpuBound({ name: 'double' })
  async twice(n: number): Promise<number> {
    return 2 * n;
  }
}

type Explored = ReturnType<OffloadExplorer['explore']>;

async function start(options: ClusterModuleOptions = {}, about: Partial<Explored> = {}) {
  const instance = new Slow();
  const found = definitionsOf(Slow.prototype).map((definition) => ({
    name: definition.options.name ?? `Slow.${definition.method}`,
    definition,
    instance,
    injected: false,
  }));
  const provideTasks = vi.fn<ClusterLink['provideTasks']>();
  const followScopes = vi.fn<ClusterLink['followScopes']>();
  const link = {
    workers: 2,
    bootstrapped: false,
    identity: { slot: 1, pid: 1, generation: 0 },
    provideTasks,
    followScopes,
    scope: undefined,
  } as unknown as ClusterLink;
  let situation: RemoteSituation | undefined;
  const remote = { start: async (given: RemoteSituation) => void (situation = given) };
  const offload = new Offload(
    resolveModuleOptions(options, { CLUSTER_OFFLOAD: 'inline' }),
    undefined,
    link,
    { explore: () => ({ found, refusals: [], ...about }) } as unknown as OffloadExplorer,
    { ...remote, close: async () => {} } as unknown as RemoteRunner,
  );
  await offload.start();
  const pending = () => provideTasks.mock.calls[0]![0](Infinity);
  return { offload, instance, followScopes, pending, situation };
}

describe('the threads of a process', () => {
  it.each([
    [8, [3, 3, 2]],
    [2, [1, 1, 1, 1]],
    [1, [1]],
  ])('of %i cores are %j in the workers', (cores, expected) => {
    const each = expected.map((_, slot) => threadsFor(cores, expected.length, slot));
    expect(each).toEqual(expected);
  });

  it('are 1 in a slot beyond the configured workers', () => {
    expect(threadsFor(4, 4, 9)).toBe(1);
  });

  it('are for its slot, or what the options say', async () => {
    const threads = async (options?: ClusterModuleOptions) =>
      (await start(options)).situation!.threads;
    expect(await threads()).toBe(threadsFor(availableCores(), 2, 1));
    expect(await threads({ offload: { threads: 3 } })).toBe(3);
  });
});

it('an app that has nothing to offload is not watched, measured or counted', async () => {
  const { offload, followScopes } = await start({}, { found: [] });
  expect(followScopes).not.toHaveBeenCalled();
  expect(offload.metrics).toEqual({ all: [], labelled: [] });
  expect(offload.snapshot()).toEqual({ threads: 0, running: 0, queueSize: 0 });
  await offload.close();
});

it('an app that cannot be offloaded does not start, with all reasons in one message', async () => {
  const refused = start({}, { refusals: ['A.a takes @Req()', 'B.b is inherited'] });
  await expect(refused).rejects.toThrow(ClusterConfigurationError);
  await expect(refused).rejects.toThrow(
    '@CpuBound() cannot work here: A.a takes @Req() | B.b is inherited',
  );
});

describe('@CpuBound() methods on the event loop', () => {
  it('run immediately, and are counted until they end', async () => {
    const { offload, instance, pending } = await start();
    const calls = [instance.count(), instance.count()];
    await new Promise(setImmediate);
    expect(offload.snapshot()).toEqual({ threads: 0, running: 2, queueSize: 0 });
    expect(pending()).toBe(true);
    for (const end of instance.ends) end('a');
    expect(await Promise.all(calls)).toEqual(['a', 'a']);
    expect(pending()).toBe(false);
  });

  it('are measured, unless metrics are off', async () => {
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
