import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import { IdleWork } from '../../../../src/worker/link/idle-work.js';

it('begins when the process serves, does one piece at a time, and goes on after an error', async () => {
  const failed = vi.fn();
  const looked = vi.spyOn(performance, 'eventLoopUtilization');
  const work = new IdleWork(failed);
  const done: string[] = [];
  work.add(async () => {
    done.push('first begins');
    await delay(5);
    done.push('first ends');
  });
  work.add(() => Promise.reject(new Error('broken')));
  work.add(() => done.push('third'));
  await nextTurn();
  expect(looked).not.toHaveBeenCalled();

  work.start();
  await vi.waitFor(() => expect(done).toEqual(['first begins', 'first ends', 'third']), 5_000);
  expect(failed).toHaveBeenCalledExactlyOnceWith(new Error('broken'));

  work.add(() => done.push('later'));
  await vi.waitFor(() => expect(done.at(-1)).toBe('later'), 5_000);
});

it('waits while the event loop is busy, but not for ever', async () => {
  const work = new IdleWork(() => {});
  const begun = performance.now();
  let doneAt = 0;
  work.add(() => (doneAt = performance.now()));
  work.start();
  while (doneAt === 0 && performance.now() - begun < 10_000) {
    const until = performance.now() + 40;
    while (performance.now() < until);
    await delay(0);
  }
  expect(doneAt - begun).toBeGreaterThan(900);
  expect(doneAt - begun).toBeLessThan(9_000);
});
