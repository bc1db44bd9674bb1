import type { ChildProcess } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { describe, expect, it, vi } from 'vitest';
import { guardChannel } from '../../src/primary/guard-channel.js';

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
