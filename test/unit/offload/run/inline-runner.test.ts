import { expect, it } from 'vitest';
import { ClusterUncloneableError } from '../../../../src/contract/errors/index.js';
import { InlineRunner } from '../../../../src/offload/run/inline-runner.js';
import { KeepingObserver, TASK } from '../../support/observed-task.js';

function start(call: (task: number, args: unknown[]) => unknown) {
  const observer = new KeepingObserver();
  const runner = new InlineRunner(2, call, observer);
  const submit = (...args: unknown[]) => runner.submit({ ...TASK, index: 3 }, args, undefined);
  return { runner, outcomes: observer.outcomes, submit };
}

it('calls on the event loop run immediately, and close() does not end them', async () => {
  const ends: (() => void)[] = [];
  const { runner, submit, outcomes } = start(() => new Promise<void>((end) => ends.push(end)));
  const calls = [submit(), submit(), submit()];
  await new Promise(setImmediate);
  expect(runner.snapshot()).toEqual({ threads: 0, running: 3, queueSize: 0 });
  expect(runner.hasCallFrom(Infinity)).toBe(true);
  await runner.close();
  for (const end of ends) end();
  await Promise.all(calls);
  expect(runner.hasCallFrom(Infinity)).toBe(false);
  expect(outcomes).toEqual(['completed', 'completed', 'completed']);
});

it('arguments and results are copied, with Buffers as Buffers', async () => {
  const given = { rows: [1], image: Buffer.from('x') };
  const kept = { cat: { name: 'Tom' }, image: Buffer.from('y') };
  let seen: [task: number, args: unknown[]] | undefined;
  const { submit } = start((...call) => {
    seen = call;
    (call[1][0] as typeof given).rows.push(2);
    return kept;
  });
  const result = (await submit(given, 'a')) as typeof kept;
  expect(seen).toEqual([3, [{ rows: [1, 2], image: Buffer.from('x') }, 'a']]);
  expect(given.rows).toEqual([1]);
  expect(result).toEqual(kept);
  expect(result.cat).not.toBe(kept.cat);
  expect(Buffer.isBuffer(result.image)).toBe(true);
});

it('a call fails as its method does', async () => {
  const { submit, outcomes } = start(() => {
    throw new RangeError('x');
  });
  await expect(submit()).rejects.toThrow(RangeError);
  expect(outcomes).toEqual(['failed']);
});

it('values that cannot be copied are refused, and such arguments run nothing', async () => {
  let runs = 0;
  const { submit, outcomes } = start(() => ({ runs: (runs += 1), f: () => 1 }));
  await expect(submit(() => 1)).rejects.toThrow(ClusterUncloneableError);
  expect(runs).toBe(0);
  await expect(submit()).rejects.toThrow(ClusterUncloneableError);
  expect(outcomes).toEqual(['failed', 'failed']);
});
