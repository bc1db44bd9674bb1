import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import {
  CONGESTED_BYTES,
  encodeFrame,
  type Frame,
  FrameSocket,
} from '../../../src/wire/frame-socket.js';
import { MAX_FRAME_BYTES } from '../../../src/wire/limits.js';

const frames = fc.array(
  fc.record({ header: fc.dictionary(fc.string(), fc.string()), body: fc.uint8Array() }),
  { maxLength: 5 },
);

/** A socket whose other end reads nothing until it is told to. */
class FakeSocket extends EventEmitter {
  writableLength = 0;
  writableCorked = 0;
  destroyed = false;
  paused = false;
  readonly uncorked = vi.fn();
  write(data: Buffer): void {
    this.writableLength += data.length;
  }
  cork(): void {
    this.writableCorked = 1;
  }
  uncork(): void {
    this.writableCorked = 0;
    this.uncorked();
  }
  pause(): void {
    this.paused = true;
  }
  resume(): void {
    this.paused = false;
  }
  isPaused(): boolean {
    return this.paused;
  }
  destroy(): void {
    this.destroyed = true;
    this.emit('close');
  }
}

const ticked = () => new Promise((resolve) => setImmediate(resolve));

const NO_EVENTS = { frame: () => {}, closed: () => {} };

/** A worker's end, and what it has read. */
function reading() {
  const socket = new FakeSocket();
  const seen: Frame[] = [];
  const frame = (each: Frame): void => void seen.push(each);
  new FrameSocket(socket as unknown as Socket, { frame, closed: () => {} }, true);
  return { seen, read: (bytes: Buffer) => socket.emit('data', bytes) };
}

describe('frames', () => {
  it('come out as they went in, however they were cut', () => {
    fc.assert(
      fc.property(frames, fc.array(fc.integer({ min: 1, max: 40 })), (sent, cuts) => {
        const bytes = Buffer.concat(
          sent.map(({ header, body }) => encodeFrame(header, Buffer.from(body))),
        );
        const { seen, read } = reading();
        let at = 0;
        for (const cut of cuts) read(bytes.subarray(at, (at = Math.min(at + cut, bytes.length))));
        read(bytes.subarray(at));
        expect(seen.map(({ header }) => ({ ...(header as object) }))).toEqual(
          sent.map(({ header }) => ({ ...header })),
        );
        expect(seen.map(({ body }) => [...body])).toEqual(sent.map(({ body }) => [...body]));
      }),
    );
  });

  it('that are no frames end the connection', () => {
    const socket = new FakeSocket();
    const closed = vi.fn();
    new FrameSocket(socket as unknown as Socket, { frame: () => {}, closed });
    socket.emit('data', Buffer.from(Uint32Array.of(1, 0, 9).buffer));
    expect(socket.destroyed).toBe(true);
    expect(closed).toHaveBeenCalledTimes(1);
  });

  it('are one write where they are due together', async () => {
    const socket = new FakeSocket();
    const frames = new FrameSocket(socket as unknown as Socket, NO_EVENTS);
    for (let n = 0; n < 10; n += 1) frames.send({ n });
    expect(socket.uncorked).not.toHaveBeenCalled();
    await ticked();
    expect(socket.uncorked).toHaveBeenCalledTimes(1);
  });

  it('of an end that does not read its answers are left unread, and bounded', async () => {
    const socket = new FakeSocket();
    const answer = Buffer.alloc(64 * 1_024);
    let answered = 0;
    const frames = new FrameSocket(socket as unknown as Socket, {
      frame: () => {
        answered += 1;
        frames.send({}, answer);
      },
      closed: () => {},
    });
    socket.emit(
      'data',
      Buffer.concat(Array.from({ length: 1_000 }, () => encodeFrame({ get: 1 }))),
    );
    expect(socket.paused).toBe(true);
    expect(socket.writableLength).toBeLessThan(CONGESTED_BYTES + 2 * answer.length);
    for (let n = 0; answered < 1_000 && n < 1_000; n += 1) {
      socket.writableLength = 0;
      socket.emit('drain');
    }
    expect(answered).toBe(1_000);
    expect(socket.paused).toBe(false);
  });

  it('that came before the end are all read', () => {
    const socket = new FakeSocket();
    const seen: unknown[] = [];
    const closed = vi.fn(() => seen.push('closed'));
    const frame = ({ header }: Frame): void => void seen.push(header);
    new FrameSocket(socket as unknown as Socket, { frame, closed });
    socket.writableLength = 2 * CONGESTED_BYTES;
    socket.emit('data', encodeFrame({ n: 1 }));
    expect(seen).toEqual([]);
    socket.writableLength = 0; // as of a socket that is destroyed
    socket.destroy();
    expect(seen).toEqual([{ n: 1 }, 'closed']);
  });

  it('that are too large are not sent', () => {
    const socket = new FakeSocket();
    const frames = new FrameSocket(socket as unknown as Socket, NO_EVENTS);
    expect(() => frames.send({ key: 'k'.repeat(MAX_FRAME_BYTES) })).toThrow(
      `the hub takes ${MAX_FRAME_BYTES} at most`,
    );
    expect(socket.destroyed).toBe(false);
  });

  it('that nobody reads are bounded: a large one is left out, a small one too many ends the connection', () => {
    const socket = new FakeSocket();
    const frames = new FrameSocket(socket as unknown as Socket, NO_EVENTS);
    const push = Buffer.alloc(16 * 1_024 * 1_024 - 100);
    const sent = Array.from({ length: 4 }, () => frames.send({}, push));
    expect([sent, socket.destroyed]).toEqual([[true, true, true, false], false]);
    for (let n = 0; n < 100 && !socket.destroyed; n += 1) frames.send({ n });
    expect(socket.destroyed).toBe(true);
  });
});
