import { once } from 'node:events';
import { describe, expect, it, onTestFinished } from 'vitest';
import { NODE } from '../../../../test/support/cluster-process.js';
import { eventually } from '../../../../test/support/eventually.js';
import { freePorts, holdPort } from '../../../../test/support/free-ports.js';
import { request } from '../../../../test/support/http-client.js';
import { childrenOf, isReaped } from '../../../../test/support/processes.js';
import { SAMPLE_APP, startTools, tools } from '../support/tools.js';

async function tune(command: readonly string[], route: string, ...options: string[]) {
  const port = await freePorts(1);
  const args = ['tune', '--url', `http://127.0.0.1:${port}${route}`, '--seconds', '1', ...options];
  return tools([...args, '--', ...command], { env: { PORT: String(port) } });
}

const script = (source: string) => [NODE, '--input-type=module', '-e', source];

/** Looks like a cluster of one worker, and answers only with a key. */
const FAKE_CLUSTER = script(`import http from 'node:http';
  const worker = { residentMemoryBytes: 1e8, eventLoopUtilization: 1 };
  const cluster = { balancing: 'shared', desired: 1, ready: 1, workers: [worker] };
  http.createServer((request, response) => {
    if (request.url === '/health') return response.end(JSON.stringify({ details: { cluster } }));
    response.statusCode = request.headers['x-key'] === 'secret' ? 200 : 401;
    response.end();
  }).listen(process.env.PORT, '127.0.0.1');`);

it.each([
  {
    what: 'a command that does not exist',
    code: 1,
    command: ['nodd', 'main.js'],
    says: 'cannot start the app: spawn nodd ENOENT',
  },
  {
    what: 'an app that takes its number of workers from elsewhere',
    code: 64,
    command: ['env', 'CLUSTER_WORKERS=2', ...SAMPLE_APP],
    says: 'started with CLUSTER_WORKERS=1 but runs 2 workers',
  },
  {
    what: 'a route that answers 401',
    code: 1,
    command: FAKE_CLUSTER,
    says: '/ never answered 2xx or 3xx',
  },
])('refuses $what', async ({ code, command, says }) => {
  const ended = await tune(command, '/');

  expect(ended, ended.stderr).toMatchObject({ code, stdout: '' });
  expect(ended.stderr).toContain(says);
});

it('refuses an address that is in use', async () => {
  const port = await freePorts(1);
  const holder = await holdPort(port);
  onTestFinished(() => void holder.close());
  const url = `http://127.0.0.1:${port}/`;

  const { code, stderr } = await tools(['tune', '--url', url, '--', ...SAMPLE_APP]);
  expect([code, stderr]).toEqual([
    69,
    expect.stringContaining(`another program already answers at ${url}`),
  ]);
});

it('sends headers, and measures in three rounds', async () => {
  const options = ['--max-workers', '1', '--header', 'X-Key: secret'];
  const { code, stdout, stderr } = await tune(FAKE_CLUSTER, '/', ...options);

  expect(code, stderr).toBe(0);
  expect(stderr).toContain('round 3 of 3: CLUSTER_WORKERS=1: ');
  expect(stdout).toMatch(/\nCLUSTER_WORKERS=1\n$/);
});

describe('all processes', () => {
  /** In the middle of the load, which a shell has started. */
  async function loading() {
    const port = await freePorts(1);
    const url = `http://127.0.0.1:${port}`;
    const command = ['sh', '-c', `${SAMPLE_APP.join(' ')}; true`];
    const tuning = startTools(
      ['tune', '--url', `${url}/hello`, '--seconds', '60', '--', ...command],
      { env: { PORT: String(port) } },
    );
    onTestFinished(() => void tuning.kill('SIGKILL'));
    await eventually(
      'requests of the load',
      async () => {
        const { outcome, body } = await request(url, '/metrics');
        return outcome === 'ok' ? /worker_requests_total\{worker="0"\} (\d+)/.exec(body)?.[1] : '';
      },
      (count) => Number(count) > 100,
    );
    const below = (pid: number): number[] =>
      childrenOf(pid).flatMap((child) => [child, ...below(child)]);
    return { tuning, pids: below(tuning.pid!) };
  }

  it('end with SIGTERM', async () => {
    const { tuning, pids } = await loading();
    // A shell, the primary and a worker.
    expect(pids.length).toBeGreaterThanOrEqual(3);

    tuning.kill('SIGTERM');

    expect(await once(tuning, 'close')).toEqual([143, null]);
    expect(pids.filter((pid) => !isReaped(pid))).toEqual([]);
  });

  it('are killed with a second Ctrl-C', async () => {
    const { tuning, pids } = await loading();
    const ending = once(tuning.stderr!, 'data');

    tuning.kill('SIGINT');
    await ending;
    tuning.kill('SIGINT');

    expect(await once(tuning, 'close')).toEqual([130, null]);
    await eventually(
      'the end of all processes',
      async () => pids.filter((pid) => !isReaped(pid)),
      (left) => left.length === 0,
    );
  });
});
