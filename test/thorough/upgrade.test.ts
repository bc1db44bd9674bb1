import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, renameSync, symlinkSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { ClusterOptions } from 'nestjs-cluster';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, NODE, PROGRAMS, stopAll } from '../support/cluster-process.js';
import { MAIN } from '../support/command-line.js';
import { eventually } from '../support/eventually.js';
import { freePorts } from '../support/free-ports.js';
import { request } from '../support/http-client.js';
import { installedNodes } from '../support/installed-nodes.js';
import { NewConnections } from '../support/new-connections.js';
import { NotifyListener } from '../support/notify-listener.js';
import { Releases } from '../support/releases.js';
import { plainEnvironment, runCommand } from '../support/run-command.js';
import { describeWith } from '../support/system-packages.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

afterEach(stopAll);

const RELOAD = { canaryMs: 100 };

/** Whether a process runs. A zombie has ended. */
function isRunning(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** The sockets of clusters in a runtime directory. */
const socketsIn = (runtime: string) => readdirSync(join(runtime, 'nestjs-cluster'));

/** Asks for an upgrade by a signal. @returns the pid of the new primary, once the old one has left. */
async function upgrade(cluster: ClusterProcess, pid: number): Promise<number> {
  const before = cluster.all('upgrade-ended').length;
  const isBegun = () => cluster.all('upgrade-started').length > before;
  const refused = () => cluster.all('warning').length;
  // Refused until this primary has seen the one before it leave.
  await eventually('the begin of an upgrade', async () => {
    const before = refused();
    process.kill(pid, 'SIGUSR2');
    await cluster.until('an answer', () => isBegun() || refused() > before);
    return isBegun();
  });
  await cluster.until('the upgrade', () => cluster.all('upgrade-ended').length > before);
  expect(cluster.all('upgrade-ended').at(-1)).toMatchObject({ outcome: 'completed', reason: null });
  await eventually('the old primary has left', () => !isRunning(pid));
  return Number(cluster.all('upgrade-started').at(-1)!['pid']);
}

/** A link to a Node, which can be pointed to another one. */
function nodeLink() {
  const path = join(temporaryDirectory(), 'node');
  const point = (target: string): void => {
    symlinkSync(target, `${path}.new`);
    renameSync(`${path}.new`, path);
  };
  point(NODE);
  return { path, point };
}

/** Asks the admin listener all the time. @returns the answers that were not 200. */
function probe(port: number): { readonly failed: unknown[]; count: number } {
  const seen = { failed: [] as unknown[], count: 0 };
  const timer = setInterval(() => {
    void request(`http://127.0.0.1:${port}`, '/health/ready').then(({ status, outcome, body }) => {
      seen.count += 1;
      // On an overloaded machine, a primary is late also without an upgrade.
      if (status === 503 && body.includes('did not answer within')) return;
      if (status !== 200) seen.failed.push(`${status ?? outcome}: ${body}`);
    });
  }, 20);
  onTestFinished(() => clearInterval(timer));
  return seen;
}

describe('an upgrade', () => {
  it('loses nothing, also to another Node, and can be followed by another one', async () => {
    const node = nodeLink();
    const path = join(temporaryDirectory(), 'control.sock');
    const admin = { port: await freePorts(1) };
    const cluster = await ClusterProcess.start({
      node: node.path,
      args: ['an argument'],
      options: { workers: 1, reload: RELOAD, control: { path }, admin },
    });
    const command = async (...args: string[]) => {
      const environment = { cwd: '/', env: plainEnvironment() };
      const answer = await runCommand(NODE, [MAIN, ...args, '-c', path, '--json'], environment);
      return answer.code === 0 ? JSON.parse(answer.stdout) : undefined;
    };
    await command('scale', '2');
    const load = new NewConnections([cluster.url]);
    onTestFinished(() => load.stop());
    await load.serves(50);
    const probes = probe(admin.port);

    const other = [...installedNodes().values()].find((each) => each !== NODE) ?? NODE;
    node.point(other);
    const second = await upgrade(cluster, cluster.pid);
    for (const pid of cluster.workerPids) {
      expect(readFileSync(`/proc/${pid}/environ`, 'utf8')).not.toContain('NESTJS_CLUSTER_HANDOVER');
    }
    node.point(NODE);
    // Refused until the new primary has seen the old one leave.
    const done = await eventually('an upgrade by command', () => command('upgrade'));
    const upgraded = done as { pid: number };
    expect(upgraded).toMatchObject({ outcome: 'completed', reason: null });
    await eventually('the second primary has left', () => !isRunning(second));
    await load.serves(50);
    await load.stop();

    expect(load.takeLost()).toEqual([]);
    expect(load.answeredBy.size).toBe(6);
    expect(probes.count).toBeGreaterThan(20);
    expect(probes.failed).toEqual([]);
    expect(cluster.all('warning')).toEqual([]);
    const version = await runCommand(other, ['-p', 'process.versions.node'], { cwd: '/', env: {} });
    expect(cluster.all('starting')[1]!['node']).toBe(version.stdout.trim());
    // The number of workers is the one that was asked for, not the one in the options.
    expect(await command('status')).toMatchObject({
      pid: upgraded.pid,
      cluster: { desired: 2, ready: 2 },
    });

    process.kill(upgraded.pid, 'SIGTERM');
    await cluster.gone();
    expect(existsSync(path)).toBe(false);
  });

  it('follows the symlink of the release, and leaves the file of a unix socket to the new primary', async () => {
    const releases = new Releases();
    for (const name of ['rel1', 'rel2']) releases.add(name);
    releases.pointTo('rel1');
    const path = join(temporaryDirectory(), 'app.sock');
    const cluster = await ClusterProcess.start({
      program: join(releases.current, 'main.mjs'),
      cwd: releases.current,
      options: { path, workers: 2, reload: RELOAD },
      env: { ...behaviour('reload-app'), PWD: releases.current },
    });
    const release = async () => JSON.parse((await request(`unix:${path}`, '/release')).body);
    expect(await release()).toEqual({ release: 'rel1', cwd: join(releases.root, 'rel1') });
    releases.pointTo('rel2');
    const second = await upgrade(cluster, cluster.pid);
    const third = await upgrade(cluster, second);
    expect(await release()).toEqual({ release: 'rel2', cwd: join(releases.root, 'rel2') });
    process.kill(third, 'SIGTERM');
    await cluster.gone();
    expect(existsSync(path)).toBe(false);
  });

  it('lets one worker at a time lead, and hands the hub over when the old primary has left', async () => {
    const runtime = temporaryDirectory();
    const runs = join(runtime, 'runs');
    const cluster = await ClusterProcess.start({
      options: { workers: 2, reload: RELOAD },
      env: {
        ...behaviour('schedule'),
        TEST_RUNS: runs,
        TEST_TIMEOUT: '1',
        XDG_RUNTIME_DIR: runtime,
      },
    });
    const ran = (job: string) =>
      readFileSync(runs, { encoding: 'utf8', flag: 'a+' })
        .split('\n')
        .map((line) => line.split(' '))
        .filter(([, name]) => name === job)
        .map(([second, , pid]) => ({ second, pid: Number(pid) }));
    await eventually('a tick', () => ran('tick').length > 1 && ran('once').length > 0);
    await upgrade(cluster, cluster.pid);
    const pids = cluster.workerPids;
    await eventually('a tick of the new primary', () => {
      return ran('tick').filter(({ pid }) => pids.includes(pid)).length > 1;
    });
    const seconds = ran('tick').map(({ second }) => second);
    expect(new Set(seconds).size).toBe(seconds.length);
    expect(ran('once')).toHaveLength(1);
  });

  it('lets the new workers use the locks of the old primary, and their own hub afterwards', async () => {
    const runtime = temporaryDirectory();
    const cluster = await ClusterProcess.start({
      options: { workers: 2, reload: { canaryMs: 1_500 } },
      env: { ...behaviour('locks'), XDG_RUNTIME_DIR: runtime },
    });
    const answers: string[] = [];
    let over = false;
    const ask = async (): Promise<void> => {
      while (!over) answers.push((await request(cluster.url, '/exclusive')).body);
    };
    const asking = [ask(), ask(), ask()];
    await eventually('answers', () => answers.length > 20);
    const hubs = () => socketsIn(runtime).filter((name) => name.endsWith('.hub'));
    const [old] = hubs();
    const upgrading = upgrade(cluster, cluster.pid);
    await cluster.until('new workers', () => cluster.all('worker-ready').length === 4);
    const asked = answers.length;
    await eventually('answers of all workers', () => answers.length > asked + 20);
    expect(hubs()).toEqual([old]);
    const pid = await upgrading;
    const before = answers.length;
    await eventually('answers of the new primary', () => answers.length > before + 20);
    over = true;
    await Promise.all(asking);
    expect(answers.filter((answer) => answer !== 'done')).toEqual([]);
    expect(hubs()).toEqual([expect.stringMatching(`^${pid}\\.`)]);
    expect(cluster.all('warning')).toEqual([]);
  });

  it('goes on if the old primary is killed in the middle', async () => {
    const runtime = temporaryDirectory();
    const cluster = await ClusterProcess.start({
      options: { workers: 2, reload: { canaryMs: 1_000 } },
      env: { XDG_RUNTIME_DIR: runtime },
    });
    const { pid } = cluster;
    cluster.kill('SIGUSR2');
    await cluster.event('upgrade-started');
    cluster.kill('SIGKILL');
    await cluster.until('the new primary', () => cluster.all('listening').length === 2);
    await eventually('the old workers have ended', () => cluster.survivors().length === 3);
    expect((await request(cluster.url, '/hello')).outcome).toBe('ok');
    expect(socketsIn(runtime).filter((name) => name.includes(`.${pid}.`))).toEqual([]);
  });
});

/** A program that behaves otherwise in its primary, or in its workers. */
const main = (inPrimary: string, inWorker = ''): string => `
  if (process.env.NESTJS_CLUSTER_WORKER === undefined) { ${inPrimary} } else { ${inWorker} }
  await import(${JSON.stringify(pathToFileURL(PROGRAMS.app).href)});`;

/** A port on which another program listens. */
async function takenPort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return (server.address() as net.AddressInfo).port;
}

/** Whether 20 connections fit into the queue of the socket, while no worker accepts. */
async function isQueueLong(cluster: ClusterProcess): Promise<boolean> {
  const workerPids = cluster.workerPids.filter((pid) => cluster.survivors().includes(pid));
  for (const pid of workerPids) process.kill(pid, 'SIGSTOP');
  const sockets = Array.from({ length: 20 }, () =>
    net.connect(Number(new URL(cluster.url).port), '127.0.0.1'),
  );
  // A client that finds no place tries again after a second.
  const connected = Promise.all(sockets.map((socket) => once(socket, 'connect'))).then(() => true);
  const isLong = await Promise.race([connected, delay(900, false)]);
  for (const socket of sockets) socket.destroy();
  for (const pid of workerPids) process.kill(pid, 'SIGCONT');
  return isLong;
}

const withOptions = (options: string): string => `
  const options = JSON.parse(process.env.TEST_OPTIONS);
  process.env.TEST_OPTIONS = JSON.stringify({ ...options, ${options} });`;

/** A hang that takes no CPU time from other tests. */
const HANG = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);';

/** A cluster of a good release, for upgrades to bad ones. */
async function startGood(options: ClusterOptions) {
  const releases = new Releases();
  releases.add('good');
  releases.pointTo('good');
  const runtime = temporaryDirectory();
  const cluster = await ClusterProcess.start({
    program: join(releases.current, 'main.mjs'),
    options: { shutdown: { drainTimeoutMs: 500, killTimeoutMs: 500 }, ...options },
    env: { XDG_RUNTIME_DIR: runtime, TEST_TAKEN: String(await takenPort()) },
  });
  const processes = cluster.survivors();
  const sockets = socketsIn(runtime);

  /** An upgrade to `source` is aborted, loses no request, and leaves nothing behind. */
  const expectRefused = async (
    { what, source, reason }: BadRelease,
    disturb?: () => Promise<void>,
  ): Promise<void> => {
    const ended = cluster.all('upgrade-ended').length;
    const load = new NewConnections([cluster.url], 2);
    onTestFinished(() => load.stop());
    await load.serves(50);

    releases.add(what, source);
    releases.pointTo(what);
    cluster.kill('SIGUSR2');
    await disturb?.();
    await cluster.until('its end', () => cluster.all('upgrade-ended').length > ended);
    expect([what, cluster.all('upgrade-ended').at(-1)]).toMatchObject([
      what,
      { level: 'error', outcome: 'aborted', reason: expect.stringMatching(reason) },
    ]);
    await eventually(
      'nothing is left behind',
      () => cluster.survivors(),
      (left) => left.join() === processes.join(),
    );
    expect([what, socketsIn(runtime)]).toEqual([what, sockets]);
    load.answeredBy.clear();
    await load.serves(50);
    await load.stop();
    expect([what, load.takeLost()]).toEqual([what, []]);
    expect([what, await isQueueLong(cluster)]).toEqual([what, true]);
    expect([...load.answeredBy.keys()].every((pid) => processes.includes(pid))).toBe(true);
  };
  return { cluster, releases, expectRefused };
}

interface BadRelease {
  readonly what: string;
  readonly source: string;
  readonly reason: RegExp;
}

const BAD_RELEASES: readonly BadRelease[] = [
  {
    what: 'has a wrong option',
    source: main(withOptions('workers: -1')),
    reason: /ended with exit code 78/,
  },
  {
    what: 'has an admin listener on a port that is taken',
    source: main(withOptions('admin: { port: Number(process.env.TEST_TAKEN) }')),
    reason: /^cannot listen on 127\.0\.0\.1:\d+/,
  },
  {
    what: 'crashes in its workers',
    source: main('', `setTimeout(() => { throw new Error('broken') }, 300)`),
    reason: /worker=\d: exited with code 1/,
  },
];

describe('an upgrade that fails', () => {
  it('changes nothing, whatever the cause, and can be followed by one that succeeds', async () => {
    const { cluster, releases, expectRefused } = await startGood({ reload: RELOAD });
    for (const bad of BAD_RELEASES) await expectRefused(bad);
    const killed = {
      what: 'is killed in the middle',
      source: main(withOptions('reload: { canaryMs: 60_000 }')),
      reason: /ended with SIGKILL/,
    };
    const started = cluster.all('upgrade-started').length;
    const ready = cluster.all('worker-ready').length;
    await expectRefused(killed, async () => {
      await cluster.until('new workers', () => cluster.all('worker-ready').length === ready + 2);
      process.kill(cluster.all('upgrade-started')[started]!['pid'] as number, 'SIGKILL');
    });

    releases.pointTo('good');
    await upgrade(cluster, cluster.pid);
    expect((await request(cluster.url, '/hello')).outcome).toBe('ok');
  });

  it('because the new primary hangs and ignores SIGTERM changes nothing', async () => {
    const { expectRefused } = await startGood({ reload: RELOAD, readyTimeoutMs: 4_000 });
    await expectRefused({
      what: 'hangs',
      source: `process.on('SIGTERM', () => {}); ${HANG}`,
      reason: /did not serve within 10100 ms/,
    });
  });

  it('because the cluster is told to stop ends both primaries', async () => {
    const cluster = await ClusterProcess.start({ options: { reload: { canaryMs: 60_000 } } });
    cluster.kill('SIGUSR2');
    await cluster.until('new workers', () => cluster.all('worker-ready').length === 4);
    cluster.kill('SIGUSR2');
    await cluster.event('warning', ({ message }) =>
      message.includes('SIGUSR2: the cluster is not upgraded: an upgrade is under way'),
    );
    cluster.kill('SIGTERM');
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    expect(cluster.survivors()).toEqual([]);
    expect(cluster.all('worker-stopped')).toHaveLength(4);
    expect(cluster.all('upgrade-ended')).toMatchObject([
      { level: 'info', outcome: 'aborted', reason: 'the cluster is shutting down' },
    ]);
  });
});

describeWith(['systemd-notify', 'perl'], 'systemd', () => {
  it('is told of the new main process, and hears only of that one from then on', async () => {
    const systemd = await NotifyListener.open();
    const cluster = await ClusterProcess.start({
      options: { reload: RELOAD },
      env: { NOTIFY_SOCKET: systemd.path, INVOCATION_ID: 'a1' },
    });
    await eventually('READY', () => systemd.states.length === 1);
    const pid = await upgrade(cluster, cluster.pid);
    await eventually('READY of the new primary', () => systemd.states.length === 2);
    process.kill(pid, 'SIGTERM');
    await cluster.gone();
    await eventually('STOPPING', () => systemd.states.at(-1) === 'STOPPING=1');
    expect(
      systemd.messages.flat().filter((each) => /^(READY|MAINPID|STOPPING)=/.test(each)),
    ).toEqual(['READY=1', `MAINPID=${pid}`, 'READY=1', 'STOPPING=1']);
  });
});
