import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { encodeFrame, type Frame, FrameReader, release } from '../../../../src/hub/wire/codec.js';
import { CONGESTED_BYTES, FrameSocket } from '../../../../src/hub/wire/frame-socket.js';
import { MAX_FRAME_BYTES } from '../../../../src/hub/wire/limits.js';

const frames = fc.array(
  fc.record({ header: fc.dictionary(fc.string(), fc.string()), body: fc.uint8Array() }),
  { maxLength: 5 },
);

/** A socket whose other end reads nothing until it is told to. */
class FakeSocket extends EventEmitter {
  writableLength = 0;
  destroyed = false;
  paused = false;
  readonly written: Buffer[] = [];
  write(data: Buffer): void {
    this.written.push(data);
    this.writableLength += data.length;
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

/** In memory of their own, as a socket reads. */
function cut(bytes: Buffer, size: number): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) {
    const own = Buffer.alloc(Math.min(size, bytes.length - at));
    bytes.copy(own, 0, at);
    chunks.push(own);
  }
  return chunks;
}

const ticked = () => new Promise((resolve) => setImmediate(resolve));

const NO_EVENTS = { frame: () => {}, closed: () => {} };

describe('frames', () => {
  it.each([
    { kept: true, size: 64 * 1_024 },
    { kept: false, size: 64 * 1_024 },
    { kept: false, size: 1_000 },
    { kept: false, size: 1_000_000 },
  ])('of all sizes are whole when they are read: %o', ({ kept, size }) => {
    const bodies = [70_000, 10, 20_000, 300_000, 0, 65_536, 40_000].map((bytes, n) =>
      Buffer.alloc(bytes, `${n} of them `),
    );
    const sent = Buffer.concat(bodies.map((body, n) => encodeFrame({ n }, body)));
    const reader = new FrameReader(kept);
    const chunks = cut(sent, size);
    const isLarge = ({ length }: Buffer) => length >= 16 * 1_024;
    const large = chunks.filter(isLarge).length;
    const seen: Buffer[] = [];
    for (const chunk of chunks) {
      reader.push(chunk);
      for (let next = reader.next(); next !== undefined; next = reader.next()) {
        expect(next.body.equals(bodies[seen.length]!)).toBe(true);
        seen.push(next.body);
      }
    }
    expect(seen).toHaveLength(bodies.length);
    if (kept) expect(Buffer.concat(seen).equals(Buffer.concat(bodies))).toBe(true);
    expect(chunks.filter(isLarge)).toHaveLength(kept ? large : 0);
  });

  it('release no memory of which they have only a part', () => {
    const shared = Buffer.alloc(100_000, 1);
    release(shared.subarray(0, 50_000));
    expect(shared).toHaveLength(100_000);
    release(shared);
    expect(shared).toHaveLength(0);
  });

  it('come out as they went in, however they were cut', () => {
    fc.assert(
      fc.property(frames, fc.array(fc.integer({ min: 1, max: 40 })), (sent, cuts) => {
        const bytes = Buffer.concat(
          sent.map(({ header, body }) => encodeFrame(header, Buffer.from(body))),
        );
        const reader = new FrameReader();
        const seen: Frame[] = [];
        const read = (chunk: Buffer) => {
          reader.push(chunk);
          for (let next = reader.next(); next !== undefined; next = reader.next()) seen.push(next);
        };
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

  it.each([
    ['shorter than its prefix', Buffer.from(Uint32Array.of(1, 2).buffer)],
    ['whose header is longer than itself', Buffer.from(Uint32Array.of(8, 9, 0).buffer)],
  ])('end the connection where one is %s', (_, bytes) => {
    const socket = new FakeSocket();
    const closed = vi.fn();
    new FrameSocket(socket as unknown as Socket, { frame: () => {}, closed });
    socket.emit('data', bytes);
    expect(socket.destroyed).toBe(true);
    expect(closed).toHaveBeenCalledTimes(1);
  });

  it('are one write where they are small and due together', async () => {
    const socket = new FakeSocket();
    const frames = new FrameSocket(socket as unknown as Socket, NO_EVENTS);
    for (let n = 0; n < 10; n += 1) frames.send({ n });
    await ticked();
    expect(socket.written.length).toBe(1);
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
    await ticked();
    expect(socket.paused).toBe(true);
    expect(socket.writableLength).toBeLessThan(CONGESTED_BYTES + 2 * answer.length);
    for (let n = 0; answered < 1_000 && n < 1_000; n += 1) {
      socket.writableLength = 0;
      socket.emit('drain');
      await ticked();
    }
    expect(answered).toBe(1_000);
    expect(socket.paused).toBe(false);
  });

  it('leave a worker time for other things, and are all read in order, also those before the end', async () => {
    const socket = new FakeSocket();
    let now = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => now);
    onTestFinished(() => void vi.restoreAllMocks());
    const seen: unknown[] = [];
    const closed = vi.fn(() => seen.push('closed'));
    const frame = ({ header }: Frame): void => {
      now += 1;
      seen.push((header as { n: number }).n);
    };
    new FrameSocket(socket as unknown as Socket, { frame, closed }, true);
    const send = (from: number) => {
      const all = Array.from({ length: 100 }, (_, n) => encodeFrame({ n: from + n }));
      socket.emit('data', Buffer.concat(all));
    };
    const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);
    send(0);
    for (let turns = 1; turns === 1 || seen.length < 100; turns += 1) {
      expect(seen.length).toBeLessThan(20 * turns);
      expect(socket.paused).toBe(true);
      await ticked();
    }
    await ticked();
    expect([seen, socket.paused]).toEqual([numbers(100), false]);
    send(100);
    socket.destroyed = true;
    socket.emit('close');
    await ticked();
    expect(seen).toEqual([...numbers(200), 'closed']);
  });

  it.each([100, 300_000])(
    'that are too large are skipped, and the next one is read; with a header of %i bytes',
    (headerBytes) => {
      const header = JSON.stringify({ id: 7 }).padEnd(headerBytes, ' ');
      const length = MAX_FRAME_BYTES + 1;
      const large = Buffer.alloc(4 + length);
      large.writeUInt32LE(length, 0);
      large.writeUInt32LE(headerBytes, 4);
      large.write(header, 8);
      const reader = new FrameReader();
      const seen: Frame[] = [];
      for (const chunk of [
        encodeFrame({ n: 1 }),
        ...cut(large, 65_536),
        encodeFrame({ n: 2 }, Buffer.from('body')),
      ]) {
        reader.push(chunk);
        for (let next = reader.next(); next !== undefined; next = reader.next()) seen.push(next);
      }
      expect(seen.map((each) => [each.header, each.skippedBytes, each.body.toString()])).toEqual([
        [{ n: 1 }, undefined, ''],
        [headerBytes === 100 ? { id: 7 } : undefined, length, ''],
        [{ n: 2 }, undefined, 'body'],
      ]);
    },
  );

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
