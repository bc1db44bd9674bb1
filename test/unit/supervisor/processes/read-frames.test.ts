import { describe, expect, it } from 'vitest';
import { readFrames } from '../../../../src/supervisor/processes/read-frames.js';

function frame(content: string, flag = 0): Buffer {
  const header = Buffer.alloc(4);
  header.writeUInt32BE(Buffer.byteLength(content) + flag);
  return Buffer.concat([header, Buffer.from(content)]);
}

const END = frame('');
const ERROR_BIT = 2 ** 31;

/** What is read where `bytes` come in pieces of `size`, and why there is no more. */
async function read(bytes: Buffer, size = bytes.length, maxBytes = 1_000) {
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
  }
  const parts: Buffer[] = [];
  try {
    for await (const part of readFrames(pieces(), maxBytes)) parts.push(part);
    return { text: String(Buffer.concat(parts)), error: undefined };
  } catch (error) {
    return { text: String(Buffer.concat(parts)), error: (error as Error).message };
  }
}

describe('what a worker sends in frames', () => {
  it('is read however it is cut', async () => {
    const bytes = Buffer.concat([frame('{"nodes":'), frame('[1,2]}'), END]);
    for (let size = 1; size <= bytes.length; size += 1) {
      expect(await read(bytes, size)).toEqual({ text: '{"nodes":[1,2]}', error: undefined });
    }
  });

  it.each([0, 3, 4, 8, 17])('is not whole without its end: %i bytes', async (length) => {
    const bytes = Buffer.concat([frame('{"nodes":'), END]).subarray(0, length - 1);
    expect((await read(bytes, 1)).error).toBe('the worker ended before it was complete');
  });

  it('may end with an error, which moves no cursor', async () => {
    const bytes = Buffer.concat([frame('{'), frame('\u001b[2Jno heap', ERROR_BIT)]);
    for (const size of [1, 100]) {
      expect(await read(bytes, size)).toEqual({
        text: '{',
        error: 'the worker could not: no heap',
      });
    }
  });

  it('is refused once it is larger than allowed', async () => {
    const { text, error } = await read(Buffer.concat([frame('12345'), frame('67890'), END]), 5, 8);
    expect(text.length).toBeLessThanOrEqual(8);
    expect(error).toContain('larger than 8 bytes');
  });

  it('takes no more room for an error than an error needs', async () => {
    const endless = frame('x'.repeat(100_000), ERROR_BIT);
    expect((await read(endless, 1_000)).error!.length).toBeLessThan(5_000);
  });
});
