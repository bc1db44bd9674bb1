import { availableParallelism } from 'node:os';
import { expect, it } from 'vitest';
import { freePorts } from '../../../../test/support/free-ports.js';
import { SAMPLE_APP, tools } from '../support/tools.js';

/** The rows of the table, as numbers by column. */
function rowsOf(stdout: string): Record<string, number>[] {
  const [head, ...lines] = stdout.slice(0, stdout.indexOf('\n\n')).split('\n');
  const titles = head!.split(/ {2,}/);
  return lines.map((line) => {
    const values = line.trim().split(/ +/);
    return Object.fromEntries(titles.map((title, index) => [title, Number(values[index])]));
  });
}

it(
  'recommends a worker for each core for a route that computes',
  { timeout: 120_000 },
  async () => {
    const port = await freePorts(1);
    const options = ['--url', `http://127.0.0.1:${port}/fib/30`, '--seconds', '1'];

    const { code, stdout, stderr } = await tools(['tune', ...options, '--', ...SAMPLE_APP], {
      env: { PORT: String(port) },
    });

    expect(code, stderr).toBe(0);
    expect(stderr).toContain('round 3 of 3: CLUSTER_WORKERS=1: ');
    // If `tune` itself notes that other programs ran, the number is not checked.
    const wanted = stdout.includes('note: rounds with the same') ? '\\d+' : availableParallelism();
    expect(stdout).toMatch(new RegExp(`\nCLUSTER_WORKERS=${wanted}\n$`));
    for (const row of rowsOf(stdout)) {
      expect(row['failed']).toBe(0);
      expect(row['p99 ms']).toBeGreaterThanOrEqual(row['p50 ms']!);
      expect(row['event loop']).toBeGreaterThan(0.6);
      expect(row['memory MB']).toBeGreaterThan(60 * row['workers']!);
    }
  },
);
