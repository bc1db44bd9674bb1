import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from 'vitest';
import { carryContext } from '../../../../src/offload/task/carry-context.js';
import { InlineRunner } from '../../../../src/offload/admission/inline-runner.js';
import { move } from '../../../../src/offload/admission/move.js';
import type { RunRequest } from '../../../../src/offload/task/runner.interface.js';

const request = (...args: unknown[]): RunRequest => ({ task: 3, args, contexts: undefined });

const TASKS = ['', '', '', 'Cats.count'].map((name) => ({ name }));
const inline = (size: number, call: (task: number, args: unknown[]) => unknown) =>
  new InlineRunner(size, call, TASKS);

describe('a runner on the event loop', () => {
  it('calls the method of the task with its arguments', async () => {
    const calls: unknown[][] = [];
    const runner = inline(2, (...call) => calls.push(call));
    expect(await runner.run(request(1, 'a')).result).toMatchObject({ ok: true, value: 1 });
    expect(calls).toEqual([[3, [1, 'a']]]);
  });

  it('has as many at a time as it is told', async () => {
    const ends: (() => void)[] = [];
    const runner = inline(2, () => new Promise<void>((end) => ends.push(end)));
    expect([runner.size, runner.idle]).toEqual([2, 2]);
    const runs = [runner.run(request()), runner.run(request())];
    expect([runner.size, runner.idle]).toEqual([2, 0]);
    await new Promise(setImmediate);
    ends[0]!();
    await runs[0]!.result;
    expect(runner.idle).toBe(1);
    ends[1]!();
    await runs[1]!.result;
    expect(runner.idle).toBe(2);
  });

  it('gives the method a copy of the context, as a thread does', async () => {
    const storage = new AsyncLocalStorage<Record<string, unknown>>();
    carryContext('inline', storage);
    const store = { id: 7 };
    const runner = inline(1, () => {
      storage.getStore()!['rows'] = 5;
      return { ...storage.getStore() };
    });
    const asked = { ...request(), contexts: { inline: store } };
    const { result } = storage.run(store, () => runner.run(asked));
    expect(await result).toMatchObject({ value: { id: 7, rows: 5 } });
    expect(store).toEqual({ id: 7 });
  });

  it('gives the method copies, with Buffers as Buffers', async () => {
    const given = { rows: [1], image: Buffer.from('x') };
    let seen: typeof given | undefined;
    const runner = inline(1, (_, [arg]) => {
      seen = arg as typeof given;
      seen.rows.push(2);
      seen.image[0] = 0;
    });
    await runner.run(request(given)).result;
    expect(Buffer.isBuffer(seen?.image)).toBe(true);
    expect(given).toEqual({ rows: [1], image: Buffer.from('x') });
  });

  it('gives a copy of the result: an instance of a class is plain data', async () => {
    class Cat {
      name = 'Tom';
      purr = undefined;
    }
    const kept = new Cat();
    const result = await inline(1, () => kept).run(request()).result;
    const { value } = result as { value: unknown };
    expect(value).toEqual({ name: 'Tom', purr: undefined });
    expect(value).not.toBeInstanceOf(Cat);
  });

  it('gives a Buffer where the result is one', async () => {
    const { result } = inline(1, () => Buffer.from('x')).run(request());
    expect(Buffer.isBuffer(((await result) as { value: unknown }).value)).toBe(true);
  });

  it('moves what is to be moved, as to a thread and back', async () => {
    const [there, back] = [move(new Uint8Array(8)), move(new Uint8Array(16))];
    const { result } = inline(1, () => ({ back })).run(request({ there }));
    expect(await result).toMatchObject({ value: { back: { byteLength: 16 } } });
    expect([there.byteLength, back.byteLength]).toEqual([0, 0]);
  });

  it('describes what the method throws', async () => {
    const runner = inline(1, () => {
      throw new RangeError('x');
    });
    expect(await runner.run(request()).result).toMatchObject({
      ok: false,
      error: { name: 'RangeError', message: 'x' },
    });
    expect(runner.idle).toBe(1);
  });

  it('refuses arguments as a thread would, runs nothing, and has its place again', async () => {
    let ran = false;
    const runner = inline(1, () => (ran = true));
    await expect(runner.run(request(() => 1)).result).rejects.toMatchObject({
      name: 'DataCloneError',
    });
    expect([ran, runner.idle]).toEqual([false, 1]);
  });

  it('refuses a result as a thread would', async () => {
    const runner = inline(1, () => ({ f: () => 1 }));
    expect(await runner.run(request()).result).toMatchObject({
      ok: false,
      error: { name: 'ClusterUncloneableError' },
    });
  });

  it('cannot end what runs, and has nothing to let go of', async () => {
    let end = () => {};
    const runner = inline(1, () => new Promise<void>((resolve) => (end = resolve)));
    const run = runner.run(request());
    await new Promise(setImmediate);
    run.abort();
    await runner.close();
    expect(runner.idle).toBe(0);
    end();
    expect(await run.result).toMatchObject({ ok: true });
    expect(runner.idle).toBe(1);
  });

  it('knows whether what runs is a task itself, also where that goes on later', async () => {
    const inside: boolean[] = [];
    const runner: InlineRunner = inline(1, async () => {
      inside.push(runner.isInside);
      await new Promise(setImmediate);
      inside.push(runner.isInside);
    });
    expect(runner.isInside).toBe(false);
    const { result } = runner.run(request());
    expect(runner.isInside).toBe(false);
    await result;
    expect([...inside, runner.isInside]).toEqual([true, true, false]);
  });
});
