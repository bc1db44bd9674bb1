import { PassThrough } from 'node:stream';
import { describe, expect, it, vi } from 'vitest';
import { BootOutput, LastLines } from '../../src/primary/boot-output.js';
import { whatIsKeptBack } from '../../src/primary/policies/boot-logs.policy.js';
import { loadCommonJs } from '../support/load-common-js.js';

const KIB = 1_024;

interface Sieve {
  sift(bytes: Buffer): { loud: boolean; bytes: Buffer }[];
}
const { LineSieve } = loadCommonJs('src/worker/line-sieve.cts') as { LineSieve: new () => Sieve };

/** What is seen at once of what is written, one call after the other. */
function loudOf(...written: string[]): string {
  const sieve = new LineSieve();
  return written
    .flatMap((text) => sieve.sift(Buffer.from(text)))
    .filter(({ loud }) => loud)
    .map(({ bytes }) => bytes.toString())
    .join('');
}

const nest = (level: string, rest = '[Cats] hungry') =>
  `[Nest] 4711  - 11/22/2026, 7:52:27 AM ${level.padStart(7)} ${rest}\n`;

describe('a line that a worker writes while it comes up', () => {
  it.each([
    nest('WARN'),
    nest('ERROR'),
    nest('FATAL'),
    '\u001b[33m[Nest] 4711  - \u001b[39m11/22/2026, 7:52:27 AM \u001b[33m   WARN\u001b[39m \u001b[38;5;3m[Cats] \u001b[39m\u001b[33mhungry\u001b[39m\n',
    nest('WARN').replace('4711 ', '4711 w3 '),
    nest('WARN').replace('Nest', 'My app'),
    '{"level":40,"msg":"hungry"}\n',
    '{"level":60,"msg":"hungry"}\n',
    '{"level":"warn","message":"hungry"}\n',
    '{"level":"ERROR","message":"hungry"}\n',
    '{"level":"fatal","message":"hungry"}\n',
    `${nest('WARN').trimEnd()} {\n  food: 'none'\n}\n`,
  ])('is seen at once where it is a warning or worse: %j', (line) => {
    expect(loudOf(line)).toBe(line);
  });

  it.each([
    nest('LOG'),
    nest('DEBUG'),
    nest('VERBOSE'),
    nest('LOG', 'an ERROR in brackets [ WARN ] is a message'),
    '\u001b[32m[Nest] 4711  - \u001b[39m11/22/2026, 7:52:27 AM \u001b[32m    LOG\u001b[39m x WARN \n',
    '{"level":30,"msg":"purred"}\n',
    '{"level":"info","message":"error"}\n',
    '{"message":"error"}\n',
    '{"level":40',
    '{}\n',
    'plain text with an ERROR in it\n',
    '\n',
    // Nest ends the process by it: the primary shows it.
    '{"level":50,"context":"ExceptionHandler","err":{}}\n',
  ])('is kept back else: %j', (line) => {
    expect(loudOf(line)).toBe('');
  });

  it('is told from its neighbours, and takes the lines that belong to it along', () => {
    const warning = `${nest('WARN')}    at cats.ts:3\n`;
    expect(loudOf(`${nest('LOG')}${warning}{"level":30}\n{"level":40}\n`)).toBe(
      `${warning}{"level":40}\n`,
    );
    expect(loudOf(nest('WARN'), 'plain\n')).toBe(nest('WARN'));
  });

  it('goes where its beginning went', () => {
    const [begin, end] = [nest('WARN').slice(0, 60), nest('WARN').slice(60)];
    expect(loudOf(begin, `${end}{"level":30}\n`)).toBe(nest('WARN'));
    expect(loudOf('{"level":30,', '"msg":"x"}\n', nest('WARN'))).toBe(nest('WARN'));
  });
});

describe('what the primary keeps of a worker', () => {
  const read = (...chunks: string[]) => {
    const lines = new LastLines();
    for (const chunk of chunks) lines.add(Buffer.from(chunk));
    return lines.read();
  };

  it('is all that it wrote, up to 64 KiB', () => {
    expect(read('one\ntw', 'o\nthree')).toEqual({ text: 'one\ntwo\nthree', missingBytes: 0 });
    expect(read()).toEqual({ text: '', missingBytes: 0 });
    const full = `${'.'.repeat(KIB - 1)}\n`.repeat(64);
    expect(read(full)).toEqual({ text: full, missingBytes: 0 });
  });

  it.each([1, 100, 70_000])('are the last whole lines of more, in chunks of %d bytes', (size) => {
    const all = Array.from({ length: 2_000 }, (_, i) => `line ${i} ${'.'.repeat(40)}\n`).join('');
    const chunks = Array.from({ length: Math.ceil(all.length / size) }, (_, i) =>
      all.slice(i * size, (i + 1) * size),
    );
    const { text, missingBytes } = read(...chunks);
    expect(all.slice(missingBytes)).toBe(text);
    expect(text).toMatch(/^line \d+ /);
    expect(text.length).toBeLessThanOrEqual(64 * KIB);
    expect(text.length).toBeGreaterThan(63 * KIB);
  });

  it('is the end of one line that is longer than all that is kept', () => {
    const { text, missingBytes } = read('x'.repeat(100 * KIB));
    expect(text).toBe('x'.repeat(64 * KIB));
    expect(missingBytes).toBe(36 * KIB);
  });

  it('is nothing once the worker is up, and nothing is read any more', async () => {
    const pipe = new PassThrough();
    const output = new BootOutput(pipe);
    const show = vi.fn();
    const worker = { slot: 1, generation: 0, pid: 4711 };
    pipe.write('one\n');
    await vi.waitFor(() => expect(pipe.readableLength).toBe(0));
    output.show(worker, show);
    expect(show).toHaveBeenCalledExactlyOnceWith(worker, { text: 'one\n', missingBytes: 0 });

    output.drop();
    await output.ended;
    output.show(worker, show);
    expect(show).toHaveBeenCalledOnce();
    expect(pipe.destroyed).toBe(true);
  });

  it('outlives an error of its pipe', async () => {
    const pipe = new PassThrough();
    const output = new BootOutput(pipe);
    pipe.destroy(new Error('ECONNRESET'));
    await output.ended;
  });
});

describe('a worker keeps back', () => {
  it.each([
    ['first', 0, true, 'error'],
    ['first', 0, false, 'output'],
    ['first', 1, true, 'output'],
    ['none', 0, true, 'output'],
    ['all', 1, false, undefined],
  ] as const)('with %s in slot %d, first start %s: %s', (bootLogs, slot, first, keeps) => {
    expect(whatIsKeptBack(bootLogs, slot, first)).toBe(keeps);
  });
});
