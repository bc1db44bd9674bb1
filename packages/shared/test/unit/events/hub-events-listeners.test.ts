import { Logger } from '@nestjs/common';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { HubCore } from '../../../src/thread/hub-core.js';
import { forgetHub, idle, startWorker, startWorkers } from '../support/hub-workers.js';

const unhandled = vi.fn();

afterEach(() => {
  forgetHub();
  vi.restoreAllMocks();
  process.off('unhandledRejection', unhandled);
  unhandled.mockReset();
});

/** Two workers; what is logged as an error; what reaches the connection to the hub or the process. */
async function start() {
  const [sender, receiver] = await startWorkers(2);
  const logged = vi.spyOn(Logger.prototype, 'error').mockReturnValue();
  process.on('unhandledRejection', unhandled);
  receiver!.frames.failed = unhandled;
  return { sender: sender!, receiver: receiver!, logged };
}

describe('a listener of an event', () => {
  it.each([
    [
      'throws',
      () => {
        throw new Error('no such order');
      },
      'no such order',
    ],
    ['rejects', async () => Promise.reject(new Error('no such order')), 'no such order'],
    [
      'throws what has no text',
      () => {
        throw Object.create(null);
      },
      'Object',
    ],
    ['rejects with what has no text', () => Promise.reject(Object.create(null)), 'Object'],
  ])('that %s is logged, and harms nothing else', async (_how, listener: () => unknown, words) => {
    const { sender, receiver, logged } = await start();
    receiver.emitter.on('n', listener);
    await sender.events.emit('n', 1, 'others');
    await idle();
    await idle();
    expect(unhandled).not.toHaveBeenCalled();
    expect(logged.mock.calls[0]?.[0]).toMatch(/a listener for the event 'n' threw: /);
    expect(logged.mock.calls[0]?.[0]).toContain(words);
  });

  it('is not asked where its payload cannot be read here, which is logged', async () => {
    const { receiver, logged } = await start();
    receiver.emitter.on('n', () => {});
    expect(() =>
      receiver.hub.frame({ t: 'event', name: 'n', from: 1 }, Buffer.from('?')),
    ).not.toThrow();
    await idle();
    expect(logged).toHaveBeenCalledOnce();
  });
});

describe('a request', () => {
  it('is answered by a listener of a pattern', async () => {
    const core = new HubCore();
    const emitter = new EventEmitter2({ wildcard: true, delimiter: ':' });
    const worker = await startWorker(core, 0, emitter);
    emitter.onAny(() => 'heard');
    emitter.on('order:*', (n: number) => n + 1);
    await expect(worker.events.request('order:total', 1)).resolves.toBe(2);
    await expect(worker.events.request('item:total', 1)).rejects.toThrow(
      /no listener for this event/,
    );
  });

  it('fails in words where its answer cannot be copied, or what is thrown has no text', async () => {
    const { sender, receiver } = await start();
    receiver.emitter.on('function', () => () => {});
    receiver.emitter.on('no text', (): unknown => Promise.reject(Object.create(null)));
    const ask = (name: string) => sender.events.request(name, 0, { to: 1, deadlineMs: 500 });
    await expect(ask('function')).rejects.toThrow(/the answer cannot be copied: .*send plain data/);
    await expect(ask('no text')).rejects.toThrow(/'no text' to another worker failed: .*Object/);
    expect(unhandled).not.toHaveBeenCalled();
  });
});
