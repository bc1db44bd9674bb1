import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, NODE, type StartOptions, stopAll } from '../support/cluster-process.js';
import { getJson } from '../support/http-client.js';

const EARLY_BOOT = join(import.meta.dirname, '../../dist/worker/early-boot.cjs');

afterEach(stopAll);

/** As a user starts it. */
function start({ env, ...start }: StartOptions): ClusterProcess {
  const seen = { CLUSTER_LOG_FORMAT: 'text', CLUSTER_BOOT_LOGS: '', ...env };
  return new ClusterProcess({ ...start, env: seen });
}

const linesOf = (cluster: ClusterProcess): string[] =>
  stripVTControlCharacters(cluster.output).trimEnd().split('\n');
const ownLines = (cluster: ClusterProcess): string[] =>
  linesOf(cluster).flatMap((line) => line.split(' [cluster] ').slice(1));
const count = (cluster: ClusterProcess, text: string): number =>
  linesOf(cluster).filter((line) => line.includes(text)).length;
const until = (cluster: ClusterProcess, pattern: RegExp, times = 1) =>
  cluster.until(
    `${times} × ${pattern}`,
    () => linesOf(cluster).filter((line) => pattern.test(line)).length >= times,
    40_000,
  );

/** What boot-lines.mjs writes that is no warning. */
const QUIET = [
  'console.log',
  'process.stdout',
  'writeSync',
  'imported writeSync',
  'writevSync in two',
  'write',
  'writev',
  'pino"',
  'Nest',
];
const LOUD = ['pino, loud', 'Nest, loud', 'console.error, loud'];
const quietLines = (cluster: ClusterProcess, slot: number): string[] =>
  QUIET.filter((how) =>
    linesOf(cluster).some((line) =>
      how.endsWith('"')
        ? line.includes(`slot ${slot} by ${how}`)
        : line.trimEnd().endsWith(`slot ${slot} by ${how}`),
    ),
  );

describe('a start', () => {
  it('of 8 workers is a first line, the lines of one worker, and a last one', async () => {
    const cluster = start({ program: 'sample', options: { workers: 8 } });
    await until(cluster, /8\/8 workers ready/);

    const lines = linesOf(cluster);
    expect(lines.length).toBeLessThanOrEqual(40);
    expect(ownLines(cluster)).toEqual([
      expect.stringMatching(/^starting 8 workers \(primary pid=\d+, Node \d+\.\d+\.\d+\)$/),
      expect.stringMatching(
        /^8\/8 workers ready in [\d.]+ s \([\d.]+–[\d.]+ s\), listening on http:\/\/127\.0\.0\.1:\d+ \(balancing=shared, endpoints: .*\)$/,
      ),
    ]);
    // A machine that is slow enough has the threads' warning of another worker among them.
    const pids = lines.flatMap((line) => /^\[Nest\] (\d+).*? LOG /.exec(line)?.[1] ?? []);
    expect(pids.length).toBeGreaterThan(10);
    expect(new Set(pids).size).toBe(1);
  });

  it('keeps back lines of the others however they are written, and no warning', async () => {
    const cluster = start({ env: behaviour('boot-lines') });
    await until(cluster, /2\/2 workers ready/);

    expect(quietLines(cluster, 0)).toEqual(QUIET);
    expect(quietLines(cluster, 1)).toEqual([]);
    for (const slot of [0, 1]) {
      for (const how of LOUD)
        expect([how, count(cluster, `slot ${slot} by ${how}`)]).toEqual([how, 1]);
    }

    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(cluster.output)![0];
    const seen = new Set<number>();
    while (seen.size < 2) {
      const { body } = await getJson<{ slot: number }>(url, '/output');
      expect(body).toEqual({
        slot: body.slot,
        diverted: body.slot === 1,
        writeSync: 'function writeSync(',
        imported: true,
        own: false,
      });
      seen.add(body.slot);
    }
    await until(cluster, /slot 1 is up/, 2);

    // A restart has its line; a reload one for each slot, and nobody's boot.
    const pid = Number(/pid=(\d+)/.exec(ownLines(cluster)[0]!)![1]);
    cluster.kill('SIGHUP');
    await until(cluster, /reload gen=1 completed/);
    const reload = ownLines(cluster).slice(2);
    expect(pid).toBe(cluster.pid);
    expect(reload).toEqual([
      'SIGHUP: reload gen=1 started',
      expect.stringMatching(/^worker=0 gen=1 pid=\d+ ready in /),
      expect.stringMatching(/^worker=1 gen=1 pid=\d+ ready in /),
      expect.stringMatching(/^reload gen=1 completed in /),
    ]);
    expect(count(cluster, 'slot 0 by console.log')).toBe(1);

    process.kill(Number(/pid=(\d+)/.exec(reload[1]!)![1]), 'SIGKILL');
    await until(cluster, /worker=0 gen=1 pid=\d+ ready/, 2);
    expect(ownLines(cluster).slice(6)).toEqual([
      expect.stringMatching(/^worker=0 gen=1 pid=\d+ died: killed by SIGKILL/),
      expect.stringMatching(/^worker=0 restarting in /),
      expect.stringMatching(/^worker=0 gen=1 pid=\d+ ready in /),
    ]);
    expect(count(cluster, 'slot 0 by console.log')).toBe(1);
  });

  it.each([
    ['all', QUIET, QUIET],
    ['none', [], []],
  ])('shows the lines of whom CLUSTER_BOOT_LOGS=%s names', async (bootLogs, first, second) => {
    const cluster = start({ env: { ...behaviour('boot-lines'), CLUSTER_BOOT_LOGS: bootLogs } });
    await until(cluster, /2\/2 workers ready/);
    expect([quietLines(cluster, 0), quietLines(cluster, 1)]).toEqual([first, second]);
  });
});

describe('what a worker keeps back', () => {
  const FLOOD = "for (let i = 0; i < 20_000; i++) console.log('.'.repeat(49))";

  it.each(['that does not read', 'that is gone'])(
    'is written in no time and lost nowhere beside a primary %s',
    async (primary) => {
      const assignment = {
        primaryPid: process.pid,
        ownArguments: 2,
        printsBootError: false,
        bootOutput: { descriptor: 5, divert: true },
      };
      const child = spawn(NODE, ['--require', EARLY_BOOT, '-e', FLOOD], {
        stdio: ['ignore', 'pipe', 'pipe', 'ignore', 'ignore', 'pipe'],
        env: { NESTJS_CLUSTER_WORKER: JSON.stringify(assignment) },
        timeout: 20_000,
      });
      const seen = [child.stdout!, child.stderr!].map((stream) => text(stream));
      const kept = child.stdio[5 as 4] as Readable;
      if (primary === 'that is gone') kept.destroy();
      // At once: Node throws away what nobody reads by then.
      let rest: Promise<string> | undefined;
      child.once('exit', () => {
        if (!kept.destroyed) rest = text(kept);
      });
      const [code] = (await once(child, 'exit')) as [number | null];

      const [out = '', err] = await Promise.all(seen);
      const back = (await rest) ?? '';
      expect([code, err]).toEqual([0, '']);
      expect(out.length + back.length).toBe(20_000 * 50);
      expect(`${back}${out}`.replaceAll(`${'.'.repeat(49)}\n`, '')).toBe('');
      if (primary === 'that does not read') expect(back.length).toBeGreaterThan(16 * 1_024);
    },
  );
});

describe('a worker that does not come up', () => {
  it('has all it wrote shown once, and one line for each attempt', async () => {
    const cluster = start({
      options: { workers: 3, restart: { backoffMs: 50, backoffFactor: 1 } },
      env: { ...behaviour('boot-lines'), TEST_BOOT_FAULT: '2:throw' },
    });
    await until(cluster, /2\/3 workers ready/);
    await until(cluster, / died: /, 3);

    // The attempt that is under way has not ended yet.
    const written = linesOf(cluster);
    const lines = written.slice(0, written.findLastIndex((line) => / died: /.test(line)) + 1);
    expect(quietLines(cluster, 2)).toEqual(QUIET);
    expect(quietLines(cluster, 1)).toEqual([]);
    const attempts = lines.flatMap((line) => / \[cluster\] (.* died: .*)/.exec(line)?.[1] ?? []);
    for (const line of attempts) expect(line).toMatch(/^worker=2 .*: Error: no such table/);
    // In one piece, with whose it is, and before the line that says how it ended.
    const header = lines.findIndex((line) =>
      / worker=2 .* did not come up; the \d+ lines/.test(line),
    );
    const size = Number(/the (\d+) lines/.exec(lines[header]!)![1]);
    const shown = lines.slice(header + 1, header + 1 + size);
    expect(shown[0]).toBe('slot 2 by console.log');
    expect(shown.filter((line) => line === 'Error: no such table')).toHaveLength(1);
    expect(shown.at(-1)).toMatch(/^\s+at /);
    for (const how of ['console.log', 'writeSync']) {
      expect(lines.filter((line) => line === `slot 2 by ${how}`)).toHaveLength(1);
    }
    expect(lines.filter((line) => line === 'Error: no such table')).toHaveLength(1);
    const loud = lines.filter((line) => line.includes('slot 2 by Nest, loud'));
    expect(loud).toHaveLength(attempts.length);
  });

  it('has shown what it wrote before it was killed', async () => {
    const cluster = start({ env: { ...behaviour('boot-lines'), TEST_BOOT_FAULT: '1:kill' } });
    await until(cluster, /worker=1 .* died: killed by SIGKILL/);
    expect(quietLines(cluster, 1)).toEqual(QUIET);
  });

  it.each(['', '1:throw'])(
    'is held up by no flood of 1 MB, of which the last 64 KiB are shown (fault %j)',
    async (fault) => {
      const cluster = start({
        env: { ...behaviour('boot-lines'), TEST_FLOOD: '1:1000000', TEST_BOOT_FAULT: fault },
      });
      if (fault === '') {
        await until(cluster, /2\/2 workers ready/);
        expect(quietLines(cluster, 1)).toEqual([]);
        return expect(cluster.output).not.toContain('.....');
      }
      await until(cluster, /worker=1 .* died: /);
      expect(cluster.output).toMatch(/the \d+ lines that it wrote \(after 9\d{5} bytes/);
      expect(count(cluster, 'slot 1 by the end of the flood')).toBe(1);
      expect(count(cluster, '.....')).toBeLessThan(660);
    },
  );
});
