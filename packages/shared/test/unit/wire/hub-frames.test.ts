import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { type Frame, FrameSocket } from '../../../src/wire/frame-socket.js';
import { MAX_FRAME_BYTES } from '../../../src/wire/protocol.js';

/** A socket whose other end reads nothing. */
class FakeSocket extends EventEmitter {
  readonly written: Buffer[] = [];
  writableCorked = 0;
  destroyed = false;
  readonly uncork = vi.fn(() => void (this.writableCorked = 0));
  get writableLength(): number {
    return this.written.reduce((sum, { length }) => sum + length, 0);
  }
  write(data: Buffer): void {
    this.written.push(data);
  }
  cork(): void {
    this.writableCorked = 1;
  }
  destroy(): void {
    this.destroyed = true;
  }
}

function start(maxUnsent = 1_000, onFrame: (frame: Frame) => void = () => {}) {
  const socket = new FakeSocket();
  const seen: Frame[] = [];
  const frames = new FrameSocket(
    socket as unknown as Socket,
    (frame) => {
      seen.push(frame);
      onFrame(frame);
    },
    () => {},
    maxUnsent,
  );
  return { socket, seen, frames, read: (bytes: Buffer) => socket.emit('data', bytes) };
}

describe('frames', () => {
  it('come out as they went in, however they were cut', () => {
    const sent = fc.array(
      fc.record({ header: fc.dictionary(fc.string(), fc.string()), body: fc.uint8Array() }),
      { maxLength: 5 },
    );
    fc.assert(
      fc.property(sent, fc.array(fc.integer({ min: 1, max: 40 })), (all, cuts) => {
        const sender = start(Infinity);
        for (const { header, body } of all) sender.frames.send(header, Buffer.from(body));
        const bytes = Buffer.concat(sender.socket.written);
        const { seen, read } = start();
        let at = 0;
        for (const cut of cuts) read(bytes.subarray(at, (at = Math.min(at + cut, bytes.length))));
        read(bytes.subarray(at));
        expect(seen.map(({ header }) => ({ ...(header as object) }))).toEqual(
          all.map(({ header }) => ({ ...header })),
        );
        expect(seen.map(({ body }) => [...body])).toEqual(all.map(({ body }) => [...body]));
      }),
    );
  });

  it('of one turn are one write', async () => {
    const { frames, socket } = start();
    for (let n = 0; n < 3; n += 1) frames.send({ n });
    expect([socket.writableCorked, socket.written.length]).toEqual([1, 3]);
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    expect(socket.uncork).toHaveBeenCalledOnce();
  });

  it('are not sent to one that does not read, other than those that must be', () => {
    const { frames, socket } = start();
    expect(frames.send({}, Buffer.alloc(1_000))).toBe(true);
    expect(frames.send({})).toBe(false);
    expect(frames.send({}, undefined, true)).toBe(true);
    expect(socket.written).toHaveLength(2);
  });

  it('that are too large are refused, with the maximum', () => {
    const { frames, socket } = start();
    expect(() => frames.send({}, Buffer.alloc(MAX_FRAME_BYTES))).toThrow(
      /the message is 25165826 bytes; the maximum is 25165824/,
    );
    expect(socket.written).toEqual([]);
  });

  it.each([
    ['announces too much', Buffer.alloc(8, 0xff)],
    ['sends no JSON', Buffer.from([1, 0, 0, 0, 0, 0, 0, 0, 0x7b])],
  ])('are no more read from one that %s', (_, bytes) => {
    const { read, socket } = start();
    read(bytes);
    expect(socket.destroyed).toBe(true);
  });

  it('are no more read where one is refused', () => {
    const sender = start();
    sender.frames.send({ n: 1 });
    sender.frames.send({ n: 2 });
    const { read, seen, socket } = start(0, () => {
      throw new Error('not a known worker');
    });
    read(Buffer.concat(sender.socket.written));
    expect([seen.length, socket.destroyed]).toEqual([1, true]);
  });
});
