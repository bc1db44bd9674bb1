import { Writable } from 'node:stream';
import { beforeEach, describe, expect, it } from 'vitest';
import { GuardedStream } from '../../../../src/contract/process/guarded-output.js';

const NO_SPACE = Object.assign(new Error('no space left'), { code: 'ENOSPC' });

/** A stream whose device has room, has none, or is slow. */
class Device extends Writable {
  readonly fd = -1;
  readonly isTTY = false;
  state: 'well' | 'full' | 'slow' = 'well';
  text = '';
  /** Ends the write that a slow device has begun. */
  finishes: () => void = () => {};

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.finishes = () => {
      if (this.state === 'well') this.text += String(chunk);
      done(this.state === 'full' ? NO_SPACE : null);
    };
    if (this.state !== 'slow') this.finishes();
  }

  /** As the stream of a pipe, which Node gives several chunks at once. */
  override _writev(_chunks: unknown, done: (error?: Error | null) => void): void {
    done(NO_SPACE);
  }
}

let device: Device;
let stream: GuardedStream;

beforeEach(() => {
  device = new Device();
  stream = GuardedStream.of(device);
});

describe('a guarded stream', () => {
  it('counts lost lines, and writes the lines after them', () => {
    device.state = 'full';
    device.write('one\n');
    device.write('two\nthree\n');
    device.write('a part');
    expect(stream.dropped).toBe(4);
    device.state = 'well';
    device.write('five\n');
    expect(device.text).toBe('five\n');
    expect(device.errored).toBeNull();
  });

  it('counts each line of one turn, also of lines that waited', () => {
    device.state = 'slow';
    for (let i = 0; i < 3; i++) device.write('a\nb\n');
    device.state = 'full';
    device.finishes();
    expect(stream.dropped).toBe(6);
  });

  it('keeps no more than 1 Mi of the log for a reader that does not read', () => {
    device.state = 'slow';
    const line = `${'.'.repeat(1_023)}\n`;
    for (let i = 0; i < 2_000; i++) stream.write(line);
    expect(device.writableLength).toBe(2 ** 20);
    expect(stream.dropped).toBe(2_000 - 1_024);
  });

  it('counts what is written after the end of the stream', async () => {
    device.end();
    device.write('one\n');
    await new Promise(setImmediate);
    expect(stream.dropped).toBe(1);
  });
});
