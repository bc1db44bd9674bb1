import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { once } from 'node:events';
import net from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { behaviour, runtimeBehaviour } from '../support/behaviour.js';
import { ClusterProcess, type StartOptions, stopAll } from '../support/cluster-process.js';
import { ControlGroup } from '../support/control-group.js';
import { getJson, request } from '../support/http-client.js';
import { ANNOUNCE_PROCESSES, startedProcesses } from '../support/started-processes.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const fixtures = join(import.meta.dirname, '../fixtures');
const BARE = join(fixtures, 'bare.mjs');
/** The primary, two tries of each slot, and one that is under way when the last fails. */
const mostProcesses = (workers: number): number => 1 + 2 * workers + 1;
const isRoot = process.getuid!() === 0;

afterEach(stopAll);

// Each case has one of the two values of CLUSTER_LOG_LEVEL. Each value occurs both with an error of
// the main file or of the app.
describe('an app that cannot be created', () => {
  it.each([
    {
      fault: 'the main file throws',
      level: 'debug',
      workers: 2,
      program: join(fixtures, 'throws-at-load.mjs'),
      error: 'Error: no such region',
      frame: /at .*throws-at-load\.mjs:5/,
    },
    {
      fault: 'the app throws at import',
      level: 'info',
      app: 'throws-at-import',
      error: 'Error: DATABASE_URL is not set',
      frame: /at .*throws-at-import\.mjs:\d+/,
    },
    {
      fault: 'onModuleInit rejects',
      level: 'debug',
      app: 'crashes#initRejects',
      error: 'Error: the database does not answer',
      frame: /at .*crashes\.mjs:\d+/,
    },
    {
      // Nest logs the error itself and calls process.exit(): what it wrote is all there is.
      fault: "Nest's container cannot resolve a dependency",
      level: 'info',
      app: 'crashes#unresolvedDependency',
      error: "Nest can't resolve dependencies of the CATS (?)",
      frame: /at .*Injector\.\w+ \(.*\.js:\d+/,
    },
  ])(
    'exits with 70 and the first frame when $fault, and shows it whole once: CLUSTER_LOG_LEVEL=$level',
    async ({ workers = 1, program, app, level, error, frame }) => {
      const cluster = new ClusterProcess({
        ...(program !== undefined && { program }),
        options: { workers },
        env: {
          ...(app !== undefined && behaviour(app)),
          CLUSTER_LOG_FORMAT: 'text',
          CLUSTER_LOG_LEVEL: level,
        },
        execArgv: ANNOUNCE_PROCESSES,
      });

      expect(await cluster.exited()).toEqual({ code: 70, signal: null });

      const failed = cluster.output.split('\n').filter((line) => line.includes('giving up'));
      expect(failed).toHaveLength(1);
      expect(failed[0]).toMatch(/^\S+Z error \[cluster\] giving up \(exit code 70\)/);
      expect(failed[0]).toContain(error);
      expect(failed[0]).toMatch(frame);
      const lines = stripVTControlCharacters(cluster.output).split('\n');
      const printed = lines.filter((line) => !line.includes('[cluster]'));
      expect(printed.filter((line) => line.includes(error))).toHaveLength(1);
      expect(printed.find((line) => /^\s+at /.test(line))).toMatch(frame);
      expect(cluster.output).not.toContain('throw error');
      const died = lines.filter((line) => / died: /.test(line));
      expect(died.length).toBeGreaterThan(1);
      const [name] = error.split(':');
      const again = died.filter((line) => line.includes(': the same error ('));
      expect(again).toHaveLength(died.length - 1);
      if (error.includes(': ')) expect(again[0]).toContain(`(${name})`);
      expect(died.filter((line) => line.includes(error))).toHaveLength(1);
      expect(died.filter((line) => frame.test(line))).toHaveLength(1);
      expect(cluster.survivors()).toEqual([]);
      expect(startedProcesses(cluster).length).toBeLessThanOrEqual(mostProcesses(workers));
    },
  );

  it('exits with 70 and names the file when a module has a syntax error', async () => {
    const path = join(temporaryDirectory(), 'broken.mjs');
    writeFileSync(path, 'export function setup() {\n  return {;\n}\n');
    const cluster = new ClusterProcess({
      options: { workers: 1 },
      env: { BEHAVE: path, CLUSTER_LOG_LEVEL: 'info' },
    });

    expect(await cluster.exited()).toEqual({ code: 70, signal: null });

    expect(cluster.all('failed')[0]).toMatchObject({
      error: { name: 'SyntaxError', message: "Unexpected token ';'" },
    });
    // Node shows the place where it prints the error itself.
    expect(cluster.output.split(`${path}:2\n`)).toHaveLength(2);
    expect(cluster.output).not.toContain('throw error');
    expect(cluster.survivors()).toEqual([]);
  });

  it('counts an exit with 0 before ready as a failure, and exits with 70', async () => {
    const cluster = new ClusterProcess({
      options: { workers: 1 },
      env: behaviour('crashes#exitsBeforeReady'),
    });

    expect(await cluster.exited()).toEqual({ code: 70, signal: null });

    const died = cluster.all('worker-died')[0]!;
    expect(died).toMatchObject({ level: 'error', cause: 'boot' });
    expect(died.message).toContain('exited with code 0');
    expect(cluster.all('failed')).toMatchObject([
      { error: { message: 'the app ended the process while it was created' } },
    ]);
    expect(cluster.all('listening')).toEqual([]);
    expect(cluster.survivors()).toEqual([]);
  });
});

describe('a worker that does not become ready', () => {
  it('is killed at readyTimeoutMs while the others serve', async () => {
    const cluster = new ClusterProcess({
      options: { workers: 2, readyTimeoutMs: 8_000 },
      env: { ...behaviour('crashes#neverReady'), TEST_SLOTS: '1' },
    });

    await cluster.event('listening');
    expect((await getJson(cluster.url, '/whoami')).body.slot).toBe(0);
    expect(cluster.all('worker-died')).toEqual([]);

    const died = await cluster.event('worker-died');
    expect(died).toMatchObject({ level: 'error', worker: 1, cause: 'boot' });
    expect(died.message).toContain(`worker=1 gen=0 pid=${died.pid} `);
    expect(died.message).toContain('boot timed out');
    expect(died.message).toContain('8000 ms');
    // We killed it, and know why.
    expect(died.message).not.toContain('out-of-memory');
    expect((await getJson(cluster.url, '/whoami')).body.slot).toBe(0);
    await cluster.event('worker-restarting', (line) => line['slot'] === 1);
  });

  it('ends the cluster with 70 when it is each one of them', async () => {
    const cluster = new ClusterProcess({
      options: { workers: 2, readyTimeoutMs: 1_500 },
      env: { ...behaviour('crashes#neverReady'), TEST_SLOTS: '0,1' },
      execArgv: ANNOUNCE_PROCESSES,
    });

    expect(await cluster.exited()).toEqual({ code: 70, signal: null });

    expect(cluster.all('failed')).toMatchObject([
      { error: { message: expect.stringContaining('boot timed out') } },
    ]);
    expect(startedProcesses(cluster).length).toBeLessThanOrEqual(mostProcesses(2));
    expect(cluster.survivors()).toEqual([]);
  });
});

describe('a first boot that is slow', () => {
  const GATED = join(fixtures, 'bare.mjs');

  /** A cluster whose workers wait in their boot until `open` is called. */
  function startGated(start: StartOptions) {
    const gate = join(temporaryDirectory(), 'gate');
    const cluster = new ClusterProcess({ ...start, program: GATED, env: { TEST_GATE: gate } });
    return {
      cluster,
      open: () => writeFileSync(gate, ''),
      waiting: () =>
        cluster.until('both workers in their boot', () =>
          [0, 1].every((slot) => cluster.output.includes(`worker=${slot} waits at the gate`)),
        ),
    };
  }

  it('has its whole time where the group or the primary was stopped meanwhile', async () => {
    // On a busy machine the workers take seconds to the gate, and from there until they are ready.
    const options = { readyTimeoutMs: 10_000 };
    const group = startGated({ options, within: ['setsid'] });
    const primary = startGated({ options });
    await Promise.all([group.waiting(), primary.waiting()]);
    process.kill(-group.cluster.pid, 'SIGSTOP');
    process.kill(primary.cluster.pid, 'SIGSTOP');
    primary.open(); // what its workers say from now on lies unread
    await delay(options.readyTimeoutMs);

    process.kill(-group.cluster.pid, 'SIGCONT');
    process.kill(primary.cluster.pid, 'SIGCONT');
    group.open();

    for (const { cluster } of [group, primary]) {
      await cluster.until('both', () => cluster.all('worker-ready').length === 2);
      expect(cluster.all('worker-died')).toEqual([]);
    }
  });
});

/** Starts a program that cannot have its address; returns its one line about it. */
async function refusedAddress(start: StartOptions): Promise<string> {
  const cluster = new ClusterProcess({ ...start, execArgv: ANNOUNCE_PROCESSES });
  expect(await cluster.exited()).toEqual({ code: 69, signal: null });
  expect(cluster.lines).toHaveLength(1);
  expect(cluster.lines[0]).toMatchObject({ level: 'error', event: 'failed', exitCode: 69 });
  expect(startedProcesses(cluster)).toEqual([cluster.pid]);
  return cluster.lines[0]!.message;
}

describe('an address that is taken', () => {
  it.each([{ workers: 2 }, { workers: 0 }])(
    'exits with 69 and names the port that another process holds, workers $workers',
    async ({ workers }) => {
      const holder = net.createServer().listen(0, '127.0.0.1');
      onTestFinished(() => void holder.close());
      await once(holder, 'listening');
      const { port } = holder.address() as net.AddressInfo;

      const message = await refusedAddress({ options: { workers, port } });

      expect(message).toContain('EADDRINUSE');
      expect(message).toContain(`127.0.0.1:${port}`);
    },
  );

  it('refuses a second instance and leaves the first alone', async () => {
    const first = await ClusterProcess.start();
    const pids = first.workerPids;
    const port = Number(new URL(first.url).port);

    const message = await refusedAddress({ options: { port } });

    expect(message).toContain('EADDRINUSE');
    expect(message).toContain(`127.0.0.1:${port}`);
    expect(first.workerPids).toEqual(pids);
    expect((await request(first.url, '/hello')).outcome).toBe('ok');
  });

  it('refuses a unix socket that somebody listens on, and leaves it alone', async () => {
    const path = join(temporaryDirectory(), 'app.sock');
    const first = await ClusterProcess.start({ options: { path, workers: 1 } });
    const inode = statSync(path).ino;

    const message = await refusedAddress({ options: { path, workers: 1 } });

    expect(message).toContain('EADDRINUSE');
    expect(message).toContain(path);
    expect(statSync(path).ino).toBe(inode);
    expect((await request(first.url, '/hello')).outcome).toBe('ok');
  });

  it('takes over the unix socket that a killed instance left', async () => {
    const path = join(temporaryDirectory(), 'app.sock');
    const killed = await ClusterProcess.start({ options: { path, workers: 1 } });
    await killed.destroy();
    expect(statSync(path).isSocket()).toBe(true);

    const cluster = await ClusterProcess.start({ options: { path, workers: 1 } });

    expect((await request(cluster.url, '/hello')).outcome).toBe('ok');
  });

  it('refuses a path that is a file of somebody, and leaves it alone', async () => {
    const path = join(temporaryDirectory(), 'data.db');
    writeFileSync(path, 'precious');

    const message = await refusedAddress({ options: { path, workers: 1 } });

    expect(message).toContain('EADDRINUSE');
    expect(message).toContain(path);
    expect(readFileSync(path, 'utf8')).toBe('precious');
  });
});

describe('an address that this user may not have', () => {
  const within = isRoot ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : [];
  const firstFreePort = Number(
    readFileSync('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8'),
  );

  // Some container hosts let everybody have every port.
  if (firstFreePort > 80) {
    it('exits with 69 and names EACCES for a privileged port', async () => {
      const message = await refusedAddress({ options: { port: 80 }, within });

      expect(message).toContain('EACCES');
      expect(message).toContain('127.0.0.1:80');
    });
  }

  it('exits with 69 and names EACCES for a path in a foreign directory', async () => {
    const directory = temporaryDirectory();
    await chmod(directory, 0o555);
    const path = join(directory, 'app.sock');

    const message = await refusedAddress({ options: { path, workers: 1 }, within });

    expect(message).toContain('EACCES');
    expect(message).toContain(path);
  });
});

describe('a signal during boot', () => {
  // The first are before our code runs, the last about when workers are ready.
  const moments = [30, 120, 300, 700, Math.round(Math.random() * 1_000)];

  it.each(moments.map((ms, i) => ({ ms, target: i % 2 === 0 ? 'primary' : 'process group' })))(
    'ends everything when the $target gets SIGTERM $ms ms after the start',
    async ({ ms, target }) => {
      const cluster = new ClusterProcess({ within: ['setsid'] });
      await delay(ms);

      process.kill(target === 'primary' ? cluster.pid : -cluster.pid, 'SIGTERM');

      const { code, signal } = await cluster.exited();
      // Before its handlers are there, the signal itself ends the primary.
      if (signal === null) expect(code).toBe(0);
      else expect(signal).toBe('SIGTERM');
      await cluster.gone();
    },
  );

  it('exits with 0 when it comes while the workers are booting', async () => {
    const cluster = new ClusterProcess({ execArgv: ANNOUNCE_PROCESSES });
    await cluster.until('a worker process', () => startedProcesses(cluster).length > 1);

    cluster.kill('SIGTERM');

    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    expect(cluster.all('failed')).toEqual([]);
    expect(cluster.survivors()).toEqual([]);
  });

  // Within 2 s, also of a worker that is stuck in it: seconds/deadlines.test.ts has that.
});

describe('where cluster.isPrimary lies', () => {
  it('starts nothing in a thread, nor in a process that a worker forks', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1 },
      env: runtimeBehaviour('messages#runsAgain'),
      execArgv: ANNOUNCE_PROCESSES,
    });
    const notes = () => cluster.output.match(/^note: .*$/gm) ?? [];
    await cluster.until('the end of both threads and the child', () => notes().length >= 8);

    expect(notes().sort()).toEqual(
      [
        'process is primary',
        'thread is bystander',
        'thread of primary exited 0',
        'process is worker',
        'thread is bystander',
        'thread of worker exited 0',
        'process is bystander',
        'child of worker exited 0',
      ]
        .map((text) => `note: ${text}`)
        .sort(),
    );
    // The primary, its worker, the worker's child.
    expect(startedProcesses(cluster)).toHaveLength(3);
    expect(cluster.all('worker-ready')).toHaveLength(1);
    expect((await request(cluster.url, '/hello')).outcome).toBe('ok');
  });

  it("refuses to run in a worker of somebody else's cluster, and says what to do", async () => {
    const cluster = new ClusterProcess({
      program: join(fixtures, 'foreign-cluster.mjs'),
      execArgv: ANNOUNCE_PROCESSES,
    });

    expect(await cluster.exited()).toEqual({ code: 78, signal: null });

    expect(cluster.lines).toHaveLength(1);
    expect(cluster.lines[0]!.message).toContain('pm2');
    expect(startedProcesses(cluster)).toHaveLength(2);
  });
});

/** Starts a program whose configuration is wrong; returns what its one line says. */
async function refusedConfiguration({ env, ...start }: StartOptions): Promise<string> {
  const cluster = new ClusterProcess({
    ...start,
    env: { CLUSTER_LOG_FORMAT: 'text', ...env },
    execArgv: ANNOUNCE_PROCESSES,
  });
  expect(await cluster.exited()).toEqual({ code: 78, signal: null });
  const lines = cluster.output
    .trim()
    .split('\n')
    .filter((line) => !/^process \d+ started$/.test(line));
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(/^\S+Z error \[cluster\] .*invalid/);
  expect(startedProcesses(cluster)).toEqual([cluster.pid]);
  return lines[0]!.slice(lines[0]!.indexOf('invalid'));
}

describe('a wrong configuration', () => {
  const port = 'a whole number from 0 to 65535';
  const workers = "'auto' or a whole number from 0 to 256";
  const ms = (min: number) => `a number of milliseconds from ${min} to 2147483647`;

  // Each check has its row in unit/options.test.ts; these are of each kind. The key and the value
  // that was seen, then what is allowed.
  it.each([
    { options: null, named: ['options: null ', 'an object'] },
    {
      options: { port: 'one', workers: 'all' },
      named: ['port: "one" ', port, 'workers: "all" ', workers],
    },
  ])('is refused with 78 and one line: options $options', async ({ options, named }) => {
    const line = await refusedConfiguration({ env: { TEST_OPTIONS: JSON.stringify(options) } });

    for (const part of named) expect(line).toContain(part);
  });

  it('is refused with 78 and one line: a number that is NaN', async () => {
    const line = await refusedConfiguration({ program: join(fixtures, 'nan.mjs') });

    for (const part of ['readyTimeoutMs: NaN ', ms(1)]) expect(line).toContain(part);
  });

  it('is refused with 78 and one line: something else than a function that creates the app', async () => {
    const line = await refusedConfiguration({ program: join(fixtures, 'not-a-factory.mjs') });

    expect(line).toContain('bootstrap() takes a function that creates the app, and got an object');
  });

  it('is refused with 78 and one line: a format of that line which does not exist', async () => {
    const line = await refusedConfiguration({ env: { CLUSTER_LOG_FORMAT: 'xml' } });

    expect(line).toContain(`CLUSTER_LOG_FORMAT: "xml" is not allowed`);
  });

  it('of the module ends the cluster with 78 at once', async () => {
    const cluster = new ClusterProcess({
      env: { TEST_MODULE_OPTIONS: '{"helth":false}' },
      execArgv: ANNOUNCE_PROCESSES,
    });

    expect(await cluster.exited()).toEqual({ code: 78, signal: null });

    expect(cluster.all('failed')).toHaveLength(1);
    expect(cluster.all('failed')[0]!.message).toContain('known are health, metrics');
    // No restart can fix the error. The second worker may have been cancelled before it started.
    expect(startedProcesses(cluster).length).toBeLessThanOrEqual(1 + 2);
    expect(cluster.survivors()).toEqual([]);
  });

  it('of the module ends the cluster with 78 at once when a factory made it', async () => {
    const cluster = new ClusterProcess({
      env: { ...behaviour('module-async'), TEST_ASYNC: '{"helth":false}' },
    });

    const { code } = await cluster.exited();

    expect(JSON.stringify(cluster.all('failed'))).toContain('known are health, metrics');
    expect(code).toBe(78);
  });
});

// Needs the right to make a control group. The unit tests of options/cgroup.ts need no group.
const mayMakeGroups = await (async () => {
  const group = ControlGroup.ofCpu(1);
  await group?.remove();
  return group !== undefined;
})();

if (mayMakeGroups) {
  describe('under a CPU quota', () => {
    it.each([
      { cpus: 0.25, workers: 1 },
      { cpus: 1.25, workers: 1 },
    ])('starts $workers worker on $cpus cores', async ({ cpus, workers }) => {
      const group = ControlGroup.ofCpu(cpus)!;
      onTestFinished(() => group.remove());
      const cluster = await ClusterProcess.start({
        program: BARE,
        options: { workers: 'auto' },
        within: group.within,
      });

      expect(cluster.all('listening')[0]).toMatchObject({ workers });
      expect((await request(cluster.url, '/')).outcome).toBe('ok');
      // Nothing that is limited is left to remove the group under.
      await cluster.destroy();
    });
  });
}
