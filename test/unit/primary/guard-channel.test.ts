import type { ChildProcess } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { constants } from 'node:os';
import { describe, expect, it, vi } from 'vitest';
import { guardChannel } from '../../../src/primary/guard-channel.js';

const FAILURE = new SyntaxError('Unexpected token');

function fail(): never {
  throw FAILURE;
}

/** A guarded process with Node's end of a channel, as Node keeps it. */
function guarded<Handle extends object>(handle: Handle) {
  const child = new EventEmitter() as EventEmitter & ChildProcess;
  Reflect.set(child, Symbol('kChannelHandle'), handle);
  const broken = vi.fn();
  guardChannel(child, broken);
  return { child, handle, broken };
}

describe('reading from a worker', () => {
  it('goes on as before', () => {
    const onread = vi.fn((..._args: unknown[]) => 'read');
    const { handle, broken } = guarded({ onread });
    expect(handle.onread('bytes')).toBe('read');
    expect(onread).toHaveBeenCalledWith('bytes');
    expect(broken).not.toHaveBeenCalled();
  });

  it('reports the error of Node for a line that is not a message', () => {
    const { handle, broken } = guarded({ onread: fail });
    expect(() => handle.onread()).not.toThrow();
    expect(broken).toHaveBeenCalledExactlyOnceWith(FAILURE);
  });

  it('reports the error of Node for a forged internal message, and hides no error of the app', () => {
    const { child, broken } = guarded({});
    child.on('internalMessage', fail).on('message', fail);
    const forged = { cmd: 'NODE_HANDLE_ACK' };
    expect(child.emit('internalMessage', forged, undefined as never)).toBe(false);
    expect(broken).toHaveBeenCalledExactlyOnceWith(FAILURE);
    expect(() => child.emit('message', {}, undefined as never)).toThrow(FAILURE);
  });

  it('stays as it is if Node keeps the channel elsewhere', () => {
    expect(() => guardChannel(new EventEmitter() as ChildProcess, vi.fn())).not.toThrow();
  });
});

it.each<[what: string, status: number, code: string | undefined]>([
  ['was written', 0, undefined],
  ['failed with ENOMEM', -constants.errno.ENOMEM, 'ENOMEM'],
  // ETOOMANYREFS, for which libuv has no name. Node would wait for the worker's acknowledgement.
  ['failed with an unknown error', -109, 'Unknown system error -109'],
  // The exit of the worker follows.
  ["met the worker's end: EPIPE", -constants.errno.EPIPE, undefined],
  ["met the worker's end: ECONNRESET", -constants.errno.ECONNRESET, undefined],
  ["met the worker's end: ECANCELED", -constants.errno.ECANCELED, undefined],
])('a message to a worker that %s', async (_, status, code) => {
  const write = vi.fn((..._args: unknown[]) => 0);
  const { handle, broken } = guarded({ onread: vi.fn(), writeUtf8String: write });
  const request: { oncomplete?: (status: number) => void } = {};
  expect(handle.writeUtf8String(request, '{}\n', FAILURE)).toBe(0);
  expect(write).toHaveBeenCalledExactlyOnceWith(request, '{}\n', FAILURE);
  // As in Node: `oncomplete` is set after the write has begun, and libuv calls it later.
  const completed = vi.fn();
  request.oncomplete = completed;
  await new Promise(setImmediate);
  request.oncomplete(status);
  expect(completed).toHaveBeenCalledExactlyOnceWith(status);
  expect(broken.mock.calls.map(([error]) => (error as Error).message)).toEqual(
    code === undefined ? [] : [`a message could not be written: ${code}`],
  );
});
