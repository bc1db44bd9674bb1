import { expect, it, vi } from 'vitest';
import { EventListeners } from '../../../../src/contract/log/event-listeners.js';
import { WORKER } from '../../support/cluster-events.js';

const READY = { worker: WORKER, bootMs: 5 };

it('calls the listeners of an event until they are removed', () => {
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

it('warns of a listener that throws or rejects, and calls the others', async () => {
  const [warn, other] = [vi.fn(), vi.fn()];
  const listeners = new EventListeners(warn);
  listeners.on('worker-ready', () => {
    throw new Error('now');
  });
  listeners.on('worker-ready', () => Promise.reject(new Error('later')));
  listeners.on('worker-ready', other);

  listeners.call('worker-ready', READY);
  await Promise.resolve();

  expect(other).toHaveBeenCalledOnce();
  const message = "a listener for 'worker-ready' threw";
  expect(warn.mock.calls).toMatchObject([
    [message, { name: 'Error', message: 'now' }],
    [message, { name: 'Error', message: 'later' }],
  ]);
});
