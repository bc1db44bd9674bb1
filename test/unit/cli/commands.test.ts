import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { defaultSocketPath } from '../../../src/contract/files/control-address.js';
import { temporaryDirectory } from '../../support/temporary-directory.js';
import { commandLine } from '../support/command-line-here.js';
import { STATUS } from '../support/cluster-status.js';
import { workerSnapshot } from '../support/fake-worker.js';

let runtime: string;
/** The bodies of the requests to the clusters of a test. */
let bodies: string[];

beforeEach(() => {
  runtime = temporaryDirectory();
  bodies = [];
  mkdirSync(join(runtime, 'nestjs-cluster'), { mode: 0o700 });
  vi.stubEnv('XDG_RUNTIME_DIR', runtime);
  vi.stubEnv('TMPDIR', runtime);
});

/** A control socket of a cluster that answers so. */
async function listenAt(path: string, answer: http.RequestListener): Promise<void> {
  const server = http.createServer(answer);
  await once(server.listen(path), 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
}

/** A control socket of a cluster that shows this status. */
function running(name: string, pid: number, status: object = {}): Promise<void> {
  return listenAt(join(runtime, 'nestjs-cluster', `${name}.${pid}.sock`), (request, response) => {
    void text(request).then((body) => {
      bodies.push(body);
      response.end(JSON.stringify({ ...STATUS, name, pid, ...status }));
    });
  });
}

/** Commands run in a folder of an app of this name, or outside any project. */
function inAppOf(name?: string): void {
  const app = temporaryDirectory();
  const folder = join(app, 'src', 'cats');
  mkdirSync(folder, { recursive: true });
  if (name !== undefined) writeFileSync(join(app, 'package.json'), JSON.stringify({ name }));
  vi.spyOn(process, 'cwd').mockReturnValue(folder);
}

describe('a command without --cluster in the directory of an app', () => {
  it('takes the cluster of this app, whatever else runs, or the one that --cluster names', async () => {
    await running('acme-shop', 4711);
    await running('billing', 4712);
    inAppOf('@acme/shop');
    const shown = async (...args: string[]) => (await commandLine('status', ...args)).stdout;
    expect(await shown()).toContain('acme-shop (primary pid 4711,');
    expect(await shown('-c', 'billing')).toContain('billing (primary pid 4712,');
  });

  it.each(['status', 'stop'])(
    'refuses `%s` if the app does not run, also if there is only one cluster',
    async (command) => {
      await running('p12', 4712);
      inAppOf('p11');

      const { code, stdout, stderr } = await commandLine(...command.split(' '));

      expect([code, stdout]).toEqual([69, '']);
      expect(stderr).toContain(
        'p11, the app in this directory, is not running; running: p12 (pid 4712); choose one with --cluster',
      );
    },
  );

  it.each([
    ['the app of the directory', 'billing', 'status'],
    ['--cluster', 'shop', 'status -c billing'],
  ])(
    'refuses to choose between two clusters with the name of %s, and names only their pids',
    async (_, app, command) => {
      await running('billing', 4712);
      await running('billing', 4713);
      await running('shop', 4711);
      inAppOf(app);

      const { code, stdout, stderr } = await commandLine(...command.split(' '));

      expect([code, stdout]).toEqual([64, '']);
      expect(stderr).toContain(
        'several clusters are running: billing (pid 4712), billing (pid 4713); choose one with --cluster',
      );
      expect(await commandLine('status', '-c', '4713')).toMatchObject({ code: 0 });
    },
  );

  it.each(['status', 'reload'])('ends with 69 if no cluster answers: %s', async (command) => {
    const path = join(runtime, 'none.sock');
    const { code, stderr } = await commandLine(command, '-c', path);
    expect([code, stderr]).toEqual([
      69,
      expect.stringContaining(`cannot reach the cluster ${path}`),
    ]);
  });
});

it('a command outside any project takes the only cluster, and refuses to choose between several', async () => {
  inAppOf();
  await running('shop', 4711);
  expect((await commandLine('status')).stdout).toContain('shop (primary pid 4711,');
  await running('billing', 4712);
  const { code, stdout, stderr } = await commandLine('status');
  expect([code, stdout]).toEqual([64, '']);
  expect(stderr).toContain('choose one with --cluster');
});

describe('a command that acts on a cluster', () => {
  beforeEach(async () => {
    await running('shop', 4711, { file: join(runtime, 'a.cpuprofile') });
    inAppOf('shop');
  });

  it.each(['reload', 'scale 3', 'restart 0', 'stop', 'cpu-profile 0', 'heap-profile 0'])(
    'prints the name of the cluster first: %s',
    async (command) => {
      const { stdout } = await commandLine(...command.split(' '));
      expect(stdout.split('\n')[0]).toBe('cluster shop (pid 4711)');
    },
  );

  it.each([
    ['scale 9', { workers: 9 }],
    ['scale +1', { workers: STATUS.cluster.desired + 1 }],
  ])('asks for what is said: %s', async (command, body) => {
    await commandLine(...command.split(' '));
    expect(JSON.parse(bodies.at(-1)!)).toEqual(body);
  });

  it('prints nothing but JSON with --json', async () => {
    const { stdout } = await commandLine('stop', '--json');
    expect(JSON.parse(stdout)).toMatchObject({ name: 'shop' });
  });
});

it('finds a cluster whose name had no room in the path of its socket', async () => {
  const deep = join(runtime, 'a'.repeat(60 - runtime.length));
  mkdirSync(join(deep, 'nestjs-cluster'), { recursive: true, mode: 0o700 });
  vi.stubEnv('XDG_RUNTIME_DIR', deep);
  const name = 'the-gateway-of-the-shop-of-the-company';
  inAppOf(name);
  await listenAt(defaultSocketPath(name, 4711), (_request, response) => {
    response.end(JSON.stringify(STATUS));
  });

  expect(await commandLine('status')).toMatchObject({ code: 0, stderr: '' });
  expect(await commandLine('status', '-c', name)).toMatchObject({ code: 0, stderr: '' });
  expect(await commandLine('status', '-c', 'the-gateway')).toMatchObject({ code: 69 });
});

it('ps shows an address only if something listens there', async () => {
  const options = { port: 3000, host: null };
  await running('shop', 4711, { options });
  await running('mails', 4712, { options, cluster: { ...STATUS.cluster, balancing: 'none' } });

  const { stdout } = await commandLine('ps');

  expect(stdout).toMatch(/^shop .* \*:3000 +24/m);
  expect(stdout).toMatch(/^mails .* - +24/m);
});

it('status says which worker does not answer', async () => {
  const workers = [
    workerSnapshot({ slot: 0, heartbeatAgeMs: 2_900 }),
    workerSnapshot({ slot: 1, heartbeatAgeMs: 3_100 }),
    workerSnapshot({ slot: 2, heartbeatAgeMs: 3_100, state: 'draining' }),
    workerSnapshot({ slot: 3, heartbeatAgeMs: null, state: 'starting' }),
  ];
  await running('shop', 4711, { cluster: { ...STATUS.cluster, workers } });

  const { stdout } = await commandLine('status', '-c', 'shop');

  const states = [...stdout.matchAll(/^ +(\d) .* (ready|no answer|draining|starting) /gm)];
  expect(states.map(([, slot, state]) => [slot, state])).toEqual([
    ['0', 'ready'],
    ['1', 'no answer'],
    ['2', 'draining'],
    ['3', 'starting'],
  ]);
});
