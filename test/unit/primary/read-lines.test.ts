import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { readLines } from '../../../src/primary/fork-worker.js';

/** What is reported of `chunks`, each written on its own. */
async function reportsOf(...chunks: (string | Buffer)[]): Promise<unknown[]> {
  const pipe = new PassThrough();
  const reports: unknown[] = [];
  readLines(pipe, (message) => reports.push(message));
  const ended = new Promise((resolve) => pipe.on('end', resolve));
  for (const chunk of chunks) pipe.write(chunk);
  pipe.end();
  await ended;
  return reports;
}

const BLOCKED = { type: 'blocked', forMs: 5_000, requests: [], frames: ['spin (/app/ü.js:3:7)'] };
const RESUMED = { type: 'resumed' };
const line = (message: unknown) => `${JSON.stringify(message)}\n`;
const BOTH = line(BLOCKED) + line(RESUMED);

describe('the reports of a watchdog', () => {
  it('may be split anywhere, also within a character', async () => {
    const bytes = Buffer.from(BOTH);
    for (let at = 1; at < bytes.length; at += 1) {
      expect(await reportsOf(bytes.subarray(0, at), bytes.subarray(at))).toEqual([
        BLOCKED,
        RESUMED,
      ]);
    }
  });

  it('may come byte by byte', async () => {
    const bytes = Array.from(Buffer.from(BOTH), (byte) => Buffer.from([byte]));
    expect(await reportsOf(...bytes)).toEqual([BLOCKED, RESUMED]);
  });

  it('are heeded only when their line is complete', async () => {
    expect(await reportsOf(line(RESUMED), JSON.stringify(BLOCKED))).toEqual([RESUMED]);
  });

  it.each(['\n', 'what\n', '{"type":\n', '\u0000\u0001\n', '}{\n', 'undefined\n'])(
    'are dropped where they are no JSON, and those after them are not: %j',
    async (garbage) => {
      expect(await reportsOf(garbage + line(RESUMED))).toEqual([RESUMED]);
    },
  );

  it('are dropped where they are longer than any report, also as JSON: the rest is not kept', async () => {
    const long = line({ ...BLOCKED, frames: ['x'.repeat(1024 * 1024)] });
    const chunks = Array.from({ length: Math.ceil(long.length / 65_536) }, (_, i) =>
      long.slice(i * 65_536, (i + 1) * 65_536),
    );
    expect(await reportsOf(...chunks, line(RESUMED))).toEqual([RESUMED]);
  });

  it('may be as long as the longest report', async () => {
    const frames = Array<string>(20).fill('x'.repeat(10_000));
    expect(await reportsOf(line({ ...BLOCKED, frames }))).toEqual([{ ...BLOCKED, frames }]);
  });

  it('end with their pipe, in whatever way: the exit of the worker tells', () => {
    const pipe = new PassThrough();
    readLines(pipe, () => {});
    expect(() => pipe.emit('error', new Error('EPIPE'))).not.toThrow();
  });
});
