import { PassThrough, Writable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { PATIENCE_MS } from '../../../support/patience.js';
import { GuardedStream } from '../../../../src/contract/process/guarded-stream.js';

const NO_SPACE = Object.assign(new Error('no space left'), { code: 'ENOSPC' });

/** A stream whose device has room, has none, or does not take anything for now. */
class Device extends Writable {
  readonly fd = -1;
  state: 'well' | 'full' | 'stalled' = 'well';
  text = '';

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    if (this.state === 'stalled') return;
    if (this.state === 'well') this.text += String(chunk);
    done(this.state === 'full' ? NO_SPACE : null);
  }
}

let device: Device;
let stream: GuardedStream;

beforeEach(() => {
  vi.useFakeTimers();
  device = new Device();
  stream = GuardedStream.of(device, ({ lines, code, forMs }) => `lost ${lines} ${code} ${forMs}\n`);
});
afterEach(() => vi.useRealTimers());

describe('a guarded stream', () => {
  it('counts the lines of what is lost, and goes on with what comes after', () => {
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

  it('says once what was lost, as soon as it can be written', () => {
    device.state = 'full';
    device.write('one\ntwo\n');
    vi.advanceTimersByTime(2_500);
    // The report that could not be written is not counted as a lost line.
    expect(stream.dropped).toBe(2);
    device.state = 'well';
    vi.advanceTimersByTime(60_000);
    expect(device.text).toBe('lost 2 ENOSPC 3000\n');

    device.state = 'full';
    device.write('three\n');
    device.state = 'well';
    vi.advanceTimersByTime(60_000);
    expect(device.text).toBe('lost 2 ENOSPC 3000\nlost 1 ENOSPC 1000\n');
    expect(vi.getTimerCount()).toBe(0);
  });

  it('tells an app that listens for errors, and no pipe of a thread', async () => {
    const thread = new PassThrough();
    thread.pipe(device);
    device.state = 'full';
    device.write('one\n');
    await Promise.resolve();
    expect(device.errored).toBeNull();

    const heard = vi.fn();
    device.on('error', heard);
    device.write('two\n');
    expect(device.errored).toBe(NO_SPACE);
    await vi.waitFor(() => expect(heard).toHaveBeenCalledExactlyOnceWith(NO_SPACE), {
      timeout: PATIENCE_MS,
    });
    expect(stream.dropped).toBe(2);
  });

  it('keeps no more than 1 Mi of the log for a reader that does not read', () => {
    device.state = 'stalled';
    const line = `${'.'.repeat(1_023)}\n`;
    for (let i = 0; i < 2_000; i++) stream.write(line);
    expect(device.writableLength).toBe(2 ** 20);
    expect(stream.dropped).toBe(2_000 - 1_024);
    vi.advanceTimersByTime(10_000);
    expect(device.writableLength).toBe(2 ** 20);
  });

  it('counts what is written after the stream was ended, and does not try to say it', async () => {
    device.end();
    device.write('one\n');
    await vi.advanceTimersByTimeAsync(10_000);
    expect(stream.dropped).toBe(1);
  });
});
