import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { afterEach, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, type StartOptions, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import type { HealthBody } from '../support/health.js';
import { getJson, request } from '../support/http-client.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

afterEach(stopAll);

const PROGRAMS = ['app', 'nest11'] as const;

const THREW = { status: 'down', message: 'threw an error; see the log' };

const UP = { status: 'up', rows: 3 };

interface Indicators extends Pick<StartOptions, 'program' | 'options'> {
  readonly indicators: readonly string[];
}

/** An app with indicators of its own, and what no answer may hold. */
function startOptions({ program = 'app', options, indicators }: Indicators) {
  const secrets = [temporaryDirectory(), `/home/${randomUUID()}`, randomUUID()] as const;
  const [cwd, home, secret] = secrets;
  const start: StartOptions = {
    program,
    options: { workers: 1, ...options },
    cwd,
    env: {
      ...behaviour('health-indicators'),
      HOME: home,
      TEST_SECRET: secret,
      TEST_INDICATORS: JSON.stringify(indicators),
    },
  };
  return { start, secrets };
}

/** Asks the endpoints of a worker, and looks that no answer holds what nobody is to know. */
class HealthClient {
  constructor(
    readonly cluster: ClusterProcess,
    readonly secrets: readonly [cwd: string, home: string, variable: string],
  ) {}

  static async start(indicators: Indicators): Promise<HealthClient> {
    const { start, secrets } = startOptions(indicators);
    return new HealthClient(await ClusterProcess.start(start), secrets);
  }

  set(name: string, what: string): Promise<unknown> {
    return request(this.cluster.url, `/set/${name}/${what}`);
  }

  async report(path = '/health'): Promise<HealthBody & { readonly http: number | undefined }> {
    const { status, body } = await request(this.cluster.url, path, { timeoutMs: 30_000 });
    for (const secret of this.secrets) expect(body).not.toContain(secret);
    expect(body).not.toMatch(new RegExp(`\\b${hostname().replaceAll('.', '\\.')}\\b`));
    expect(body).not.toMatch(/node_modules|\.m?js\b/);
    return { http: status, ...(JSON.parse(body) as HealthBody) };
  }

  async calls(): Promise<Readonly<Record<string, number>>> {
    return (await getJson(this.cluster.url, '/calls')).body;
  }

  logged(text: string): number {
    return this.cluster.output.split('\n').filter((line) => line.includes(text)).length;
  }
}

describe.each(PROGRAMS)('indicators of the app (%s)', (program) => {
  it('are in /health alone, each as it is, whatever the others do', async () => {
    const app = await HealthClient.start({ program, indicators: ['database', 'cache'] });

    const well = await app.report();
    expect(well).toMatchObject({ http: 200, status: 'ok', error: {} });
    expect(well.details).toMatchObject({ database: UP, cache: UP });
    expect(Object.keys(well.details)).toEqual([
      'cluster',
      'eventLoop',
      'memory',
      'offload',
      'database',
      'cache',
    ]);
    expect(well.details['memory']).toHaveProperty('heapUsedBytes');
    const { database: before } = await app.calls();
    expect(Object.keys((await app.report('/health/ready')).details)).toEqual(['cluster']);
    expect((await app.report('/health/live')).details).toEqual({});
    expect((await app.calls())['database']).toBe(before);

    // One that throws: nothing of the error is told, the log has it once.
    await app.set('database', 'throws');
    for (let i = 0; i < 3; i++) {
      const failing = await app.report();
      expect(failing).toMatchObject({ http: 503, status: 'error' });
      expect(failing.error).toEqual({ database: THREW });
      expect(failing.info).toMatchObject({ cluster: { status: 'up' }, cache: UP });
    }
    await eventually('the error in the log', () => app.logged('[ClusterModule]'));
    expect(app.logged(app.secrets[2])).toBe(1);
    for (const path of ['/health/live', '/health/ready']) {
      expect((await app.report(path)).http).toBe(200);
    }

    // One that hangs, besides.
    await app.set('cache', 'hangs');
    expect((await app.report()).error).toEqual({
      database: THREW,
      cache: { status: 'down', message: 'gave no result within 1000 ms; see the log' },
    });

    await app.set('database', 'attempt');
    const mixed = await app.report();
    expect(mixed.info['database']).toMatchObject({ ...UP, responseTime: expect.any(Number) });

    await app.set('cache', 'up');
    await app.set('database', 'down');
    expect(await app.report()).toMatchObject({
      http: 503,
      error: { database: { status: 'down', rows: 3 } },
    });
  });

  it('that no module provides end the start, with the remedy', async () => {
    const { start } = startOptions({
      program,
      options: { workers: program === 'app' ? 2 : 0 },
      indicators: ['database', 'unknown', 'cache'],
    });
    const cluster = new ClusterProcess(start);

    expect(await cluster.exited(), cluster.output).toEqual({ code: 78, signal: null });

    const [failed, ...more] = cluster.all('failed');
    expect(more).toEqual([]);
    expect(failed!.message).toContain(
      'health.indicators: UnknownHealthIndicator is not a provider in the default scope; add it',
    );
    expect(cluster.all('listening')).toEqual([]);
    expect(cluster.survivors()).toEqual([]);
  });
});
