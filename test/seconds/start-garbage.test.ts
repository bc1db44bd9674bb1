import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { collectStartGarbage, untilIdle } from '../../src/contract/process/process-meter.js';

it('collects the garbage of the start once the process has been idle for 5 s', async () => {
  // A collection of the young generation alone keeps what a WeakRef refers to.
  const garbage = new WeakRef({ of: 'the start' });
  await collectStartGarbage();
  await delay(100);
  expect(garbage.deref()).toBeUndefined();
});

it('collects nothing in a process that is never idle', async () => {
  const load = setInterval(() => {
    for (const end = performance.now() + 10; performance.now() < end;);
  }, 20);
  expect(await untilIdle(100, 0.05, 500)).toBe(false);
  clearInterval(load);
  expect(await untilIdle(100, 0.05, 500)).toBe(true);
});
