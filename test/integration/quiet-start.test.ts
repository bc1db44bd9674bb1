import { stripVTControlCharacters } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, type StartOptions, stopAll } from '../support/cluster-process.js';
import { getJson } from '../support/http-client.js';

afterEach(stopAll);

/** As a user starts it. */
function start({ env, ...start }: StartOptions): ClusterProcess {
  const seen = { CLUSTER_LOG_FORMAT: 'text', CLUSTER_LOG_LEVEL: '', ...env };
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

  it('logs the lines of one worker, warnings of all, and every line once they are up', async () => {
    const cluster = start({ env: behaviour('crashes#bootLines') });
    await until(cluster, /2\/2 workers ready/);

    expect([count(cluster, 'slot 0 comes up'), count(cluster, 'slot 1 comes up')]).toEqual([1, 0]);
    expect([count(cluster, 'slot 0 warns'), count(cluster, 'slot 1 warns')]).toEqual([1, 1]);

    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(cluster.output)![0];
    while (count(cluster, 'slot 1 is up') === 0) await getJson(url, '/output');

    // A restart has its line; a reload one for each slot, and nobody's boot.
    cluster.kill('SIGHUP');
    await until(cluster, /reload gen=1 completed/);
    const reload = ownLines(cluster).slice(2);
    expect(reload).toEqual([
      'SIGHUP: reload gen=1 started',
      expect.stringMatching(/^worker=0 gen=1 pid=\d+ ready in /),
      expect.stringMatching(/^worker=1 gen=1 pid=\d+ ready in /),
      expect.stringMatching(/^reload gen=1 completed in /),
    ]);
    process.kill(Number(/pid=(\d+)/.exec(reload[1]!)![1]), 'SIGKILL');
    await until(cluster, /worker=0 gen=1 pid=\d+ ready/, 2);
    expect(ownLines(cluster).slice(6)).toEqual([
      expect.stringMatching(/^worker=0 gen=1 pid=\d+ died: killed by SIGKILL/),
      expect.stringMatching(/^worker=0 restarting in /),
      expect.stringMatching(/^worker=0 gen=1 pid=\d+ ready in /),
    ]);
    expect(count(cluster, 'slot 0 comes up')).toBe(1);
  });

  it('that fails in one slot shows its error, but not with each attempt, and one line for each attempt', async () => {
    const cluster = start({
      options: { workers: 3 },
      env: { ...behaviour('crashes#bootLines'), TEST_BOOT_FAULT: '2' },
    });
    await until(cluster, /2\/3 workers ready/);
    // A worker that comes up makes the next failure news: its line is in full again.
    await until(cluster, / died: .*: the same error \(Error\)$/);

    const attempts = ownLines(cluster).filter((line) => line.includes(' died: '));
    expect(attempts[0]).toMatch(/^worker=2 .*: Error: no such table/);
    for (const line of attempts) {
      expect(line).toMatch(/^worker=2 .*: (Error: no such table|the same error \(Error\)$)/);
    }
    // Whether a worker prints its error is decided when it is forked, and whether its line is in full
    // when it dies. Another worker that comes up in between makes the line be in full alone.
    const inFull = attempts.filter((line) => line.includes('no such table')).length;
    const printed = linesOf(cluster).filter((line) => line === 'Error: no such table').length;
    expect(printed).toBeGreaterThan(0);
    expect(printed).toBeLessThanOrEqual(inFull);
  });
});
