import type { ChildProcess } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { constants } from 'node:os';
import { describe, expect, it, vi } from 'vitest';
import { guardChannel } from '../../../src/primary/guard-channel.js';

/** A process with Node's end of a channel in it, as Node keeps it. */
function childWith(onread: ((...args: unknown[]) => unknown) | undefined) {
  const child = new EventEmitter() as EventEmitter & ChildProcess;
  const handle = { onread };
  Reflect.set(child, Symbol('kChannelHandle'), handle);
  return { child, handle };
}

const FAILURE = new SyntaxError('Unexpected token');

describe('a guarded channel', () => {
  it('reads on as before', () => {
    const onread = vi.fn(() => 'read');
    const broken = vi.fn();
    const { child, handle } = childWith(onread);
    guardChannel(child, broken);
    expect(handle.onread!('bytes')).toBe('read');
    expect(onread).toHaveBeenCalledWith('bytes');
    expect(broken).not.toHaveBeenCalled();
  });

  it('tells of what Node throws on a line that is no message, and goes on', () => {
    const broken = vi.fn();
    const { child, handle } = childWith(() => {
      throw FAILURE;
    });
    guardChannel(child, broken);
    expect(() => handle.onread!()).not.toThrow();
    expect(broken).toHaveBeenCalledExactlyOnceWith(FAILURE);
  });

  it("tells of what Node throws on a forged message of its own, and leaves other listeners' errors alone", () => {
    const broken = vi.fn();
    const { child } = childWith(undefined);
    child.on('internalMessage', () => {
      throw FAILURE;
    });
    child.on('message', () => {
      throw FAILURE;
    });
    guardChannel(child, broken);
    expect(child.emit('internalMessage', { cmd: 'NODE_HANDLE_ACK' }, undefined as never)).toBe(
      false,
    );
    expect(broken).toHaveBeenCalledExactlyOnceWith(FAILURE);
    expect(() => child.emit('message', {}, undefined as never)).toThrow(FAILURE);
  });

  it('is left as it is where Node keeps it elsewhere', () => {
    expect(() => guardChannel(new EventEmitter() as ChildProcess, vi.fn())).not.toThrow();
  });
});

/** Sends as Node does: `oncomplete` is set after the write was begun, and libuv calls it later. */
async function sendWith(status: number) {
  const write = vi.fn((..._args: unknown[]) => 0);
  const child = new EventEmitter() as EventEmitter & ChildProcess;
  const handle = { onread: vi.fn(), writeUtf8String: write };
  Reflect.set(child, Symbol('kChannelHandle'), handle);
  const broken = vi.fn();
  guardChannel(child, broken);
  const request: { oncomplete?: (status: number) => void } = {};
  const connection = {};
  expect(handle.writeUtf8String(request, '{}\n', connection)).toBe(0);
  expect(write).toHaveBeenCalledExactlyOnceWith(request, '{}\n', connection);
  const completed = vi.fn();
  request.oncomplete = completed;
  await new Promise(setImmediate);
  request.oncomplete(status);
  expect(completed).toHaveBeenCalledExactlyOnceWith(status);
  return broken;
}

describe('a message to a worker', () => {
  it.each([
    ['ENOMEM', -constants.errno.ENOMEM],
    ['EIO', -constants.errno.EIO],
    // ETOOMANYREFS: libuv has no name for it.
    ['Unknown system error -109', -109],
  ])(
    'that could not be written (%s) breaks the channel: Node would wait for its acknowledgement',
    async (code, status) => {
      const broken = await sendWith(status);
      expect(broken).toHaveBeenCalledExactlyOnceWith(
        expect.objectContaining({ message: `a message to it could not be written: ${code}` }),
      );
    },
  );

  it('that was written leaves the channel alone', async () => {
    expect(await sendWith(0)).not.toHaveBeenCalled();
  });

  it.each(['EPIPE', 'ECONNRESET', 'ECANCELED'] as const)(
    'that met the end of the worker (%s) is left to its exit',
    async (code) => {
      expect(await sendWith(-constants.errno[code])).not.toHaveBeenCalled();
    },
  );
});
