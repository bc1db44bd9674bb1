import { describe, expect, it, vi } from 'vitest';
import { EventListeners, workerExitIn } from '../../../../src/contract/events/index.js';
import { died, stopped, WORKER } from '../../support/cluster-events.js';

const READY = { worker: WORKER, bootMs: 5 };

describe('listeners of events', () => {
  it('hear those that they were given for, until they are taken away', () => {
    const [given, later] = [vi.fn(), vi.fn()];
    const listeners = new EventListeners(() => {}, { 'worker-ready': given, warning: undefined });
    listeners.on('worker-ready', later);
    expect(listeners.names).toEqual(['worker-ready']);

    listeners.call('worker-ready', READY);
    listeners.call('warning', { message: 'odd' });
    listeners.off('worker-ready', later);
    listeners.call('worker-ready', READY);

    expect(given.mock.calls).toEqual([[READY], [READY]]);
    expect(later.mock.calls).toEqual([[READY]]);
  });

  it('end nothing by what they throw, now or later', async () => {
    const threw = vi.fn();
    const heard = vi.fn();
    const [now, later] = [new Error('now'), new Error('later')];
    const listeners = new EventListeners(threw);
    listeners.on('worker-ready', () => {
      throw now;
    });
    listeners.on('worker-ready', () => Promise.reject(later));
    listeners.on('worker-ready', heard);

    listeners.call('worker-ready', READY);
    await Promise.resolve();

    expect(heard).toHaveBeenCalledOnce();
    expect(threw.mock.calls).toEqual([
      ['worker-ready', now],
      ['worker-ready', later],
    ]);
  });
});

describe('the exit of a worker', () => {
  it('is what comes of it, asked for or not', () => {
    expect(workerExitIn('worker-died', died())).toEqual({
      worker: WORKER,
      cause: 'crash',
      failed: true,
      detail: 'exited with code 1',
    });
    expect(workerExitIn('worker-stopped', stopped({ problem: 'a hook failed' }))).toEqual({
      worker: WORKER,
      cause: 'reload',
      failed: false,
      detail: 'a hook failed',
    });
    expect(workerExitIn('worker-ready', READY)).toBeUndefined();
  });
});
