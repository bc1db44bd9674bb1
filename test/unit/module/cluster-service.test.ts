import { expect, it, onTestFinished, vi } from 'vitest';
import { ClusterService } from '../../../src/module/cluster.service.js';
import { sendAway } from '../../../src/worker/drain/drain.js';
import { ProcessLink } from '../../../src/worker/link/process-link.js';

it('lets a drain wait for each function of onDrain(), and logs the error of one that fails', async () => {
  const link = new ProcessLink();
  onTestFinished(() => link.end());
  const warn = vi.spyOn(link, 'warn');
  let stopped = (): void => {};
  const stop = vi.fn(() => new Promise<void>((resolve) => (stopped = resolve)));
  const fails = vi.fn(() => {
    throw new Error('not connected');
  });
  new ClusterService(link).onDrain(stop).onDrain(fails);
  expect(stop).not.toHaveBeenCalled();

  let drained = false;
  const sent = link.clients.map((clients) => sendAway(clients, 1_000));
  const drain = Promise.all(sent).then(() => (drained = true));
  await vi.waitUntil(() => warn.mock.calls.length > 0);
  expect(warn.mock.calls).toEqual([['a function passed to onDrain() failed: not connected']]);
  expect(drained).toBe(false);

  stopped();
  await drain;
  expect([stop, fails].map(({ mock }) => mock.calls.length)).toEqual([1, 1]);
});
