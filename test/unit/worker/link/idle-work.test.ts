import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { expect, it, onTestFinished, vi } from 'vitest';
import { ProcessLink } from '../../../../src/worker/link/process-link.js';

function start(logWarning?: (message: string) => void): ProcessLink {
  const link = new ProcessLink({ ...(logWarning && { logWarning }) });
  onTestFinished(() => link.end());
  return link;
}

it('begins when the process serves, does one piece at a time, and goes on after an error', async () => {
  const failed = vi.fn();
  const link = start(failed);
  const looked = vi.spyOn(performance, 'eventLoopUtilization');
  const done: string[] = [];
  link.afterStart(async () => {
    done.push('first begins');
    await delay(5);
    done.push('first ends');
  });
  link.afterStart(() => Promise.reject(new Error('broken')));
  link.afterStart(() => done.push('third'));
  await nextTurn();
  expect(looked).not.toHaveBeenCalled();

  link.serve();
  await vi.waitFor(() => expect(done).toEqual(['first begins', 'first ends', 'third']), 5_000);
  expect(failed).toHaveBeenCalledExactlyOnceWith('background work after startup failed: broken');

  link.afterStart(() => done.push('later'));
  await vi.waitFor(() => expect(done.at(-1)).toBe('later'), 5_000);
});

it('waits while the event loop is busy, but not for ever', async () => {
  const link = start();
  const begun = performance.now();
  let doneAt = 0;
  link.afterStart(() => (doneAt = performance.now()));
  link.serve();
  while (doneAt === 0 && performance.now() - begun < 10_000) {
    const until = performance.now() + 40;
    while (performance.now() < until);
    await delay(0);
  }
  expect(doneAt - begun).toBeGreaterThan(900);
  expect(doneAt - begun).toBeLessThan(9_000);
});
