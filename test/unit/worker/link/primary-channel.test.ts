import { afterEach, describe, expect, it, vi } from 'vitest';
import { seal } from '../../../../src/contract/ipc/index.js';
import { PrimaryChannel } from '../../../../src/worker/link/primary-channel.js';

afterEach(() => void vi.restoreAllMocks());

/** @param listeners of the process, with the channel's own. */
function start(listeners = 1) {
  let receive = (_raw: unknown, _handle: unknown): void => {};
  vi.spyOn(process, 'listenerCount').mockReturnValue(listeners);
  vi.spyOn(process, 'on').mockImplementation((_event, listener) => {
    receive = listener as typeof receive;
    return process;
  });
  const heard = vi.fn();
  new PrimaryChannel().onMessage(heard);
  const handle = { close: vi.fn() };
  return { heard, handle, receive: (raw: unknown) => receive(raw, handle) };
}

describe('a handle beside a message of the primary', () => {
  it('is for whoever takes it', () => {
    const { heard, handle, receive } = start();
    receive(seal({ type: 'adopt', slot: 1 }));
    expect(heard).toHaveBeenCalledWith(expect.objectContaining({ type: 'adopt' }), handle);
    expect(handle.close).not.toHaveBeenCalled();
  });

  it.each([
    ['brings none', seal({ type: 'collect' })],
    ['is broken', { ...seal({ type: 'collect' }), type: 'odd' }],
    ["is the app's, which does not listen", { question: 1 }],
  ])('is closed where the message %s', (_, raw) => {
    const { handle, receive } = start();
    receive(raw);
    expect(handle.close).toHaveBeenCalledOnce();
  });

  it('is left to an app that listens', () => {
    const { handle, receive } = start(2);
    receive({ question: 1 });
    expect(handle.close).not.toHaveBeenCalled();
  });
});
