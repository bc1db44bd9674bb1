import { once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { NODE } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { freePorts, holdPort } from '../support/free-ports.js';
import { request } from '../support/http-client.js';
import { isReaped } from '../support/processes.js';
import { SAMPLE_APP, TuneProcess } from '../support/tune-process.js';

const root = join(import.meta.dirname, '../..');
const FIXTURE = join(root, 'test/fixtures/app.mjs');

/** The error of `tune` for a command that starts no app that it can measure. */
async function refusal(
  code: number,
  command: readonly string[],
  { route = '/hello', options = [], env = {} }: Situation = {},
): Promise<string> {
  const port = env['PORT'] ?? String(await freePorts(1));
  const url = `http://127.0.0.1:${port}${route}`;
  const tune = new TuneProcess(['--url', url, ...options, '--', ...command], {
    PORT: port,
    TEST_OPTIONS: JSON.stringify({ port: Number(port), host: '127.0.0.1' }),
    ...env,
  });
  onTestFinished(() => void tune.child.kill('SIGTERM'));
  const exit = await tune.exit;
  expect([exit, tune.stdout], tune.stderr).toEqual([code, '']);
  expect(tune.stderr).toMatch(/^error: /);
  // oxlint-disable-next-line no-control-regex -- what a terminal would obey
  expect(tune.stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
  return tune.stderr;
}

interface Situation {
  readonly route?: string;
  readonly options?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const script = (source: string) => [NODE, '--input-type=module', '-e', source];

describe('what cannot be measured is refused:', () => {
  it('an address that somebody has', async () => {
    const port = await freePorts(1);
    const holder = await holdPort(port);
    onTestFinished(() => void holder.close());

    const error = await refusal(69, SAMPLE_APP, { env: { PORT: String(port) } });

    expect(error).toContain(`cannot listen on 127.0.0.1:${port}: something listens there before`);
  });

  it('a command that there is none of', async () => {
    const error = await refusal(78, ['nodd', 'main.js']);

    expect(error).toContain('cannot run "nodd": there is no such command');
  });

  it('a command that ends, with the last it wrote', async () => {
    const error = await refusal(
      70,
      script(`console.log('one'); console.error('\\x1b]0;owned\\x07two'); process.exitCode = 3;`),
    );

    expect(error).toContain('the app ended with code 3; the last it wrote:');
    expect(error).toMatch(/ {2}\| (one|two)\n {2}\| (one|two)\n/);
  });

  it('an app that is no cluster', async () => {
    const source = `import http from 'node:http';
      http.createServer((_, response) => response.end('here')).listen(process.env.PORT, '127.0.0.1');`;

    const error = await refusal(69, script(source));

    expect(error).toContain('(status 200) does not show a cluster');
    expect(error).toContain('--health-path');
  });

  it('an app whose health shows no details', async () => {
    const error = await refusal(69, [NODE, FIXTURE], {
      env: { TEST_MODULE_OPTIONS: JSON.stringify({ health: { details: false } }) },
    });

    expect(error).toContain('health.details');
  });

  it('an app that takes its number of workers from elsewhere', async () => {
    const error = await refusal(78, ['env', 'CLUSTER_WORKERS=2', ...SAMPLE_APP]);

    expect(error).toContain('started with CLUSTER_WORKERS=1 and runs 2 workers');
  });

  it('an app that listens elsewhere', async () => {
    const elsewhere = await freePorts(1);

    const error = await refusal(69, ['env', `PORT=${elsewhere}`, ...SAMPLE_APP]);

    expect(error).toContain(`it listens on http://127.0.0.1:${elsewhere}`);
    expect(error).toContain('--url');
  });

  it('a route that does not answer as it should', async () => {
    expect(await refusal(70, SAMPLE_APP, { route: '/nope' })).toContain('/nope answers 404');
  });

  it('a route that answers nothing while it is measured', async () => {
    const error = await refusal(70, SAMPLE_APP, {
      route: '/wait/4000',
      options: ['--seconds', '1'],
    });

    expect(error).toContain('answered nothing within 1 s under ');
    expect(error).toContain('--seconds');
  });
});

describe('an app without metrics', () => {
  it('is measured all the same, but for its CPU', async () => {
    const port = await freePorts(1);
    const tune = new TuneProcess(
      [
        '--url',
        `http://127.0.0.1:${port}/wait/50`,
        '--max-workers',
        '1',
        '--seconds',
        '1',
        '--rounds',
        '1',
        '--',
        NODE,
        FIXTURE,
      ],
      {
        TEST_OPTIONS: JSON.stringify({ port, host: '127.0.0.1' }),
        TEST_MODULE_OPTIONS: JSON.stringify({ metrics: false }),
      },
    );

    expect([await tune.exit, tune.lastLine], tune.stderr).toEqual([0, 'CLUSTER_WORKERS=1']);
    expect(tune.stdout).toContain(
      'note: the CPU, and whether the route runs in threads, is not known',
    );
    const [titles, figures] = tune.stdout.split('\n');
    const p50 = figures!.trim().split(/ +/)[titles!.split(/ {2,}/).indexOf('p50 ms')];
    expect(Number(p50)).toBeGreaterThanOrEqual(50);
  });
});

describe('a route that runs in threads', () => {
  it('is measured with workers that have threads, and both are recommended', async () => {
    const port = await freePorts(1);
    const options = ['--seconds', '1', '--rounds', '1', '--max-workers', '1'];
    const tune = new TuneProcess(
      ['--url', `http://127.0.0.1:${port}/offload/fib/20`, ...options, '--', ...SAMPLE_APP],
      { PORT: String(port) },
    );
    onTestFinished(() => void tune.child.kill('SIGTERM'));

    expect(await tune.exit, tune.stderr).toBe(0);
    expect(tune.stderr).not.toContain('error:');

    expect(tune.stdout).toMatch(/^workers {2}threads each {2}/);
    expect(tune.stderr).toContain('CLUSTER_WORKERS=1 CLUSTER_THREADS=1: ');
    expect(tune.lastLine).toMatch(/^CLUSTER_WORKERS=\d+ CLUSTER_THREADS=\d+$/);
  });
});

describe('headers', () => {
  it('are sent with each request of the route', async () => {
    const port = await freePorts(1);
    // The smallest thing that looks like a cluster, and lets nobody in without a key.
    const source = `import http from 'node:http';
      const worker = { residentMemoryBytes: 1e8, eventLoopUtilization: 1 };
      const cluster = { balancing: 'shared', desired: 1, ready: 1, workers: [worker] };
      http.createServer((request, response) => {
        if (request.url === '/health') return response.end(JSON.stringify({ details: { cluster } }));
        response.statusCode = request.headers['x-key'] === 'secret' ? 200 : 401;
        response.end();
      }).listen(${port}, '127.0.0.1');`;
    const args = ['--url', `http://127.0.0.1:${port}/`, '--max-workers', '1', '--seconds', '1'];
    const command = ['--rounds', '1', '--', ...script(source)];

    const refused = new TuneProcess([...args, ...command]);
    expect([await refused.exit, refused.stderr]).toEqual([
      70,
      expect.stringContaining('answers 401'),
    ]);
    const found = new TuneProcess([...args, '--header', 'X-Key: secret', ...command]);
    expect([await found.exit, found.lastLine], found.stderr).toEqual([0, 'CLUSTER_WORKERS=1']);
  });
});

describe('all that was started', () => {
  /** In the middle of its load. */
  async function loading(): Promise<{ tune: TuneProcess; pids: number[] }> {
    const port = await freePorts(1);
    const url = `http://127.0.0.1:${port}`;
    const tune = new TuneProcess(
      [
        '--url',
        `${url}/hello`,
        '--seconds',
        '60',
        '--',
        'sh',
        '-c',
        `${SAMPLE_APP.join(' ')}; true`,
      ],
      { PORT: String(port) },
    );
    onTestFinished(() => void tune.child.kill('SIGKILL'));
    await eventually(
      'requests of the load',
      async () => {
        const { outcome, body } = await request(url, '/metrics');
        return outcome === 'ok' ? /worker_requests_total\{worker="0"\} (\d+)/.exec(body)?.[1] : '';
      },
      (count) => Number(count) > 100,
    );
    return { tune, pids: tune.descendants };
  }

  it.each([
    { signal: 'SIGINT', code: 130 },
    { signal: 'SIGTERM', code: 143 },
  ] as const)('ends with $signal', async ({ signal, code }) => {
    const { tune, pids } = await loading();
    // A shell, its primary, a worker, the load.
    expect(pids.length).toBeGreaterThanOrEqual(4);

    tune.child.kill(signal);

    expect([await tune.exit, tune.stdout]).toEqual([code, '']);
    expect(tune.stderr).toBe(`${signal}: ending the app\n`);
    expect(pids.filter((pid) => !isReaped(pid))).toEqual([]);
  });

  it('is killed with a second signal', async () => {
    const { tune, pids } = await loading();
    const ending = once(tune.child.stderr!, 'data');

    tune.child.kill('SIGINT');
    await ending;
    tune.child.kill('SIGINT');

    expect(await tune.exit).toBe(130);
    await eventually(
      'the end of all processes',
      async () => pids.filter((pid) => !isReaped(pid)),
      (left) => left.length === 0,
    );
  });
});
