import { afterEach, describe, expect, it } from 'vitest';
import { availableWorkers } from '../../src/contract/options/check/available-workers.js';
import { freePorts } from '../../../../test/support/free-ports.js';
import { SAMPLE_APP, TuneProcess } from '../../../../test/support/tune-process.js';

let running: TuneProcess | undefined;

afterEach(() => {
  running?.child.kill('SIGTERM');
});

/** Runs `nestjs-cluster tune` on a route of the sample app. */
async function tune(route: string, seconds: number, ...options: string[]): Promise<TuneProcess> {
  const port = await freePorts(1);
  const url = `http://127.0.0.1:${port}${route}`;
  running = new TuneProcess(
    ['--url', url, '--seconds', String(seconds), '--rounds', '1', ...options, '--', ...SAMPLE_APP],
    { PORT: String(port) },
  );
  expect([await running.exit, running.stderr]).toEqual([0, expect.not.stringContaining('error:')]);
  return running;
}

/** Rows of the table, as numbers by column. */
function rowsOf({ stdout }: TuneProcess): Record<string, number>[] {
  const [head, ...lines] = stdout.slice(0, stdout.indexOf('\n\n')).split('\n');
  const titles = head!.split(/ {2,}/);
  return lines.map((line) => {
    const values = line.trim().split(/ +/);
    return Object.fromEntries(titles.map((title, index) => [title, Number(values[index])]));
  });
}

const MEASURED = { timeout: 120_000 };

/** Checks the recommendation, unless `tune` notes that other programs disturbed the measurement. */
function expectRecommended({ lastLine, stdout }: TuneProcess, line: string): void {
  const disturbed = /^note: (rounds of the same setting differ|other programs took)/m.test(stdout);
  if (!disturbed) expect(lastLine, stdout).toBe(line);
}

describe('a route that computes', () => {
  it('is to have a worker for each core', MEASURED, async () => {
    const cores = availableWorkers();

    const found = await tune('/fib/30', 1, '--rounds', '2');

    expectRecommended(found, `CLUSTER_WORKERS=${cores}`);
    expect(found.lastLine).toMatch(/^CLUSTER_WORKERS=\d+$/);
    expect(found.stderr).toContain('round 2 of 2: CLUSTER_WORKERS=1: ');
    const rows = rowsOf(found);
    expect(rows[0]).toMatchObject({ workers: 1, failed: 0 });
    for (const row of rows) {
      expect(row['requests/s']).toBeGreaterThan(1);
      expect(row['p99 ms']).toBeGreaterThanOrEqual(row['p50 ms']!);
      // A request computes for milliseconds, and a worker cannot use more than one core.
      expect(row['CPU ms/request']).toBeGreaterThan(1);
      expect(row['CPU cores']).toBeLessThan(row['workers']! + 0.3);
      expect(row['event loop']).toBeGreaterThan(0.6);
      expect(row['memory MB']).toBeGreaterThan(60 * row['workers']!);
    }
  });
});
