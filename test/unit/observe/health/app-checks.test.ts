import { beforeEach, describe, expect, it, vi } from 'vitest';
import { ClusterConfigurationError } from '../../../../src/contract/errors/errors.js';
import { appChecks } from '../../../../src/observe/health/app-checks.js';

type Entries = Parameters<typeof appChecks>[0];
type Container = Parameters<typeof appChecks>[1];

const UP = { found: { status: 'up' } } as const;

class DatabaseHealthIndicator {
  check = () => UP;
}

const logged: string[] = [];
const log = { say: (line: string) => void logged.push(line) };
const container = {
  get(type: unknown) {
    if (type === DatabaseHealthIndicator) return new DatabaseHealthIndicator();
    throw new Error('Nest could not find the given element');
  },
} as unknown as Container;

async function report(entry: unknown): Promise<unknown> {
  const [check] = appChecks([entry] as Entries, container, log);
  return (check as () => Promise<unknown>)();
}

beforeEach(() => void (logged.length = 0));

describe('an indicator of the app', () => {
  it.each([
    () => UP,
    async () => UP,
    { method: () => UP }.method.bind({}),
    DatabaseHealthIndicator,
  ])('is given to terminus as it is: %s', async (entry) => {
    expect(await report(entry)).toBe(UP);
    expect(logged).toEqual([]);
  });

  it('that throws is down, and only the log has the error', async () => {
    const error = new Error('postgres://user:password@db');
    const cache = () => {
      throw error;
    };

    expect(await report(cache)).toEqual({
      cache: { status: 'down', message: 'threw an error; see the log' },
    });
    expect(logged).toEqual([
      expect.stringMatching(/^health indicator "cache" threw an error: .*postgres:/),
    ]);
  });

  it("that throws terminus' own error leaves it to terminus", async () => {
    const error = Object.assign(new Error('down'), { isHealthCheckError: true, causes: {} });

    await expect(report(() => Promise.reject(error))).rejects.toBe(error);
  });

  it('that hangs is down after a second', async () => {
    vi.useFakeTimers();
    const answer = report(() => new Promise(() => {}));
    await vi.advanceTimersByTimeAsync(1_000);

    const message = 'did not finish within 1000 ms; see the log';
    expect(await answer).toEqual({ indicator1: { status: 'down', message } });
    expect(vi.getTimerCount()).toBe(0);
  });

  it('that is a class which no module provides is refused', () => {
    class Unknown {
      check = () => UP;
    }

    expect(() => appChecks([Unknown], container, log)).toThrow(
      new ClusterConfigurationError(
        'health.indicators: Unknown is not a provider in the default scope; add it to the providers of a module',
      ),
    );
  });
});
