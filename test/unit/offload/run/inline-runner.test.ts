import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from 'vitest';
import { ClusterUncloneableError } from '../../../../src/contract/errors/index.js';
import { InlineRunner } from '../../../../src/offload/run/inline-runner.js';
import { carryContext } from '../../../../src/offload/task/carry-context.js';
import { KeepingObserver, TASK } from '../../support/observed-task.js';

function start(call: (task: number, args: unknown[]) => unknown) {
  const observer = new KeepingObserver();
  const runner = new InlineRunner(2, call, observer);
  return {
    runner,
    outcomes: observer.outcomes,
    submit: (...args: unknown[]) => runner.submit({ ...TASK, index: 3 }, args, undefined),
  };
}

describe('a runner on the event loop', () => {
  it('calls the method of the task with its arguments', async () => {
    const calls: unknown[][] = [];
    const { submit, outcomes } = start((...call) => calls.push(call));
    expect(await submit(1, 'a')).toBe(1);
    expect([calls, outcomes]).toEqual([[[3, [1, 'a']]], ['completed']]);
  });

  it('runs calls at once, and knows how many run', async () => {
    const ends: (() => void)[] = [];
    const { runner, submit } = start(() => new Promise<void>((end) => ends.push(end)));
    const calls = [submit(), submit(), submit()];
    await new Promise(setImmediate);
    expect(ends).toHaveLength(3);
    expect(runner.snapshot()).toEqual({ threads: 0, running: 3, queueSize: 0 });
    expect(runner.hasCallFrom(Infinity)).toBe(true);
    await runner.close();
    for (const end of ends) end();
    await Promise.all(calls);
    expect(runner.hasCallFrom(Infinity)).toBe(false);
  });

  it('gives the method a copy of the context', async () => {
    const storage = new AsyncLocalStorage<Record<string, unknown>>();
    carryContext('inline', storage);
    const store = { id: 7 };
    const { runner } = start(() => {
      storage.getStore()!['rows'] = 5;
      return { ...storage.getStore() };
    });
    expect(await runner.submit(TASK, [], { inline: store })).toEqual({ id: 7, rows: 5 });
    expect(store).toEqual({ id: 7 });
  });

  it('copies arguments and result, with Buffers as Buffers', async () => {
    class Cat {
      name = 'Tom';
    }
    const given = { rows: [1], image: Buffer.from('x') };
    const kept = { cat: new Cat(), image: Buffer.from('y') };
    let seen: typeof given | undefined;
    const { submit } = start((_, [arg]) => {
      seen = arg as typeof given;
      seen.rows.push(2);
      seen.image[0] = 0;
      return kept;
    });
    const result = (await submit(given)) as typeof kept;
    expect(given).toEqual({ rows: [1], image: Buffer.from('x') });
    expect([Buffer.isBuffer(seen!.image), Buffer.isBuffer(result.image)]).toEqual([true, true]);
    expect(result).toEqual(kept);
    expect(result.cat).not.toBe(kept.cat);
    expect(result.cat).toBeInstanceOf(Cat);
  });

  it('fails as the method does', async () => {
    const { submit, outcomes } = start(() => {
      throw new RangeError('x');
    });
    await expect(submit()).rejects.toThrow(RangeError);
    expect(outcomes).toEqual(['failed']);
  });

  it('refuses what cannot be copied, and runs nothing with such arguments', async () => {
    let runs = 0;
    const { submit, outcomes } = start(() => ({ runs: (runs += 1), f: () => 1 }));
    await expect(submit(() => 1)).rejects.toThrow(ClusterUncloneableError);
    expect(runs).toBe(0);
    await expect(submit()).rejects.toThrow(ClusterUncloneableError);
    expect(outcomes).toEqual(['failed', 'failed']);
  });
});
