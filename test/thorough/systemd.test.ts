import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import net from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, it, onTestFinished } from 'vitest';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { ClusterProcess, NODE, type StartOptions, stopAll } from '../support/cluster-process.js';
import { printed } from '../support/command-line.js';
import { readDocument } from '../support/documents.js';
import { eventually } from '../support/eventually.js';
import { freePorts } from '../support/free-ports.js';
import { request } from '../support/http-client.js';
import { NewConnections } from '../support/new-connections.js';
import { IS_FIRST_RUN } from '../support/once.js';
import { plainEnvironment, runCommand } from '../support/run-command.js';
import { describeWith } from '../support/system-packages.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

/** Prints each datagram as one line. Perl, because Node has no datagram sockets of the family unix. */
const PROGRAM = `
  $| = 1;
  socket(my $s, AF_UNIX, SOCK_DGRAM, 0) or die $!;
  bind($s, pack_sockaddr_un($ARGV[0])) or die $!;
  print "bound\\n";
  while (defined recv($s, my $m, 65536, 0)) { print join("\\x1f", split(/\\n/, $m)), "\\n" }`;

/** Listens on a NOTIFY_SOCKET, as systemd does. Ends with the test. */
class NotifyListener {
  /** The variables of each message. */
  readonly messages: string[][] = [];

  private constructor(readonly path: string) {}

  static async open(): Promise<NotifyListener> {
    const listener = new NotifyListener(join(temporaryDirectory(), 'notify'));
    const child = spawn('perl', ['-MSocket', '-e', PROGRAM, listener.path], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill());
    let rest = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop()!;
      listener.messages.push(...lines.map((line) => line.split('\x1f')));
    });
    const ended = once(child, 'exit').then(() => Promise.reject(new Error('perl has ended')));
    await Promise.race([once(child.stdout, 'data'), ended]);
    listener.messages.shift();
    return listener;
  }

  /** The states READY, RELOADING and STOPPING, in order. Each message repeats the state. */
  get states(): string[] {
    return this.messages
      .flat()
      .filter((each) => /^(READY|RELOADING|STOPPING)=1$/.test(each))
      .filter((each, index, all) => each !== all[index - 1]);
  }

  count(variable: string): number {
    return this.messages.flat().filter((each) => each === variable).length;
  }
}

afterEach(stopAll);

/** The handle of a bound socket that this process holds, as systemd does, and never accepts from. */
function heldSocket(): { readonly fd: number; readonly url: string } {
  type Handle = { fd: number; close(): void; getsockname(out: { port?: number }): void };
  const { _createServerHandle: create } = net as unknown as {
    _createServerHandle(this: void, host: string, port: number, family: 4): Handle;
  };
  const handle = create('127.0.0.1', 0, 4);
  onTestFinished(() => handle.close());
  const own: { port?: number } = {};
  handle.getsockname(own);
  return { fd: handle.fd, url: `http://127.0.0.1:${own.port}` };
}

/** Starts a cluster as systemd does with a socket: LISTEN_PID is the process that executes Node. */
const withSocket = (fd: number, start: StartOptions = {}): StartOptions => ({
  ...start,
  descriptors: [fd],
  env: { ...start.env, LISTEN_FDS: '1', LISTEN_FDNAMES: 'app.socket' },
  within: ['sh', '-c', 'LISTEN_PID=$$ exec "$@"', 'sh'],
});

const variablesOf = (pid: number): string[] =>
  readFileSync(`/proc/${pid}/environ`, 'utf8')
    .split('\0')
    .map((variable) => variable.split('=')[0]!);

it.each([
  { workers: 2, given: {}, processes: 4 },
  { workers: 0, given: { balancing: 'ports' }, processes: 2 },
] as const)(
  'loses no connection over a stop and a start while systemd holds the socket, workers: $workers',
  async ({ workers, given, processes }) => {
    const { fd, url } = heldSocket();
    const before = await ClusterProcess.start(withSocket(fd, { options: { workers, port: 0 } }));
    expect(before.url).toBe(url);
    expect(before.all('warning')).toEqual([]);
    for (const pid of before.workerPids) expect(variablesOf(pid).join()).not.toContain('LISTEN_');
    const load = new NewConnections([url]);
    onTestFinished(async () => void (await load.stop()));
    await load.serves(50);

    before.kill('SIGTERM');
    expect(await before.exited()).toEqual({ code: 0, signal: null });
    // Nobody accepts now: the clients wait in the queue of the socket, which has kept its length.
    let waiting = 0;
    for (let client = 0; client < 20; client += 1) {
      const socket = net.connect(Number(new URL(url).port), '127.0.0.1', () => (waiting += 1));
      onTestFinished(() => void socket.destroy());
    }
    await eventually('20 connections in the queue', () => waiting === 20, Boolean, 10_000);
    const options = { workers, port: 1, ...given };
    const after = await ClusterProcess.start(withSocket(fd, { options }));
    await load.serves(50);
    await load.stop();

    expect(load.lost.splice(0)).toEqual([]);
    expect(load.answeredBy.size).toBe(processes);
    expect(after.all('warning').map(({ message }) => message)).toEqual([
      expect.stringContaining(
        `the options port, host and path are ignored, because systemd passes the socket ${url}`,
      ),
    ]);
  },
);

describeWith(['systemd-socket-activate'], 'systemd-socket-activate', () => {
  const start = (address: string, options: StartOptions = {}): ClusterProcess => {
    const variables = ['CLUSTER_LOG_FORMAT', 'CLUSTER_LOG_LEVEL', 'TEST_MARKER', 'TEST_OPTIONS'];
    const passed = variables.flatMap((name) => ['-E', name]);
    return new ClusterProcess({
      ...options,
      within: ['systemd-socket-activate', '-l', address, ...passed],
    });
  };

  it('starts the cluster with its socket of TCP', async () => {
    const port = await freePorts(1);
    const socket = join(temporaryDirectory(), 'control.sock');
    const cluster = start(`127.0.0.1:${port}`, { options: { control: { path: socket } } });
    const url = `http://127.0.0.1:${port}`;
    await cluster.until('the socket', () => cluster.output.includes('Listening'));
    expect((await request(url, '/hello')).body).toBe('Hello World!');
    await cluster.event('listening');
    expect(cluster.url).toBe(url);
    const status = JSON.parse(await printed('status', '--cluster', socket, '--json')) as object;
    expect(status).toMatchObject({ options: { host: '127.0.0.1', port } });
  });
});

// Our own messages to systemd, and our own documents.
if (IS_FIRST_RUN) {
  describeWith(['systemd-notify', 'perl'], 'a listener at NOTIFY_SOCKET', () => {
    it('is told the state', async () => {
      const systemd = await NotifyListener.open();
      const watchdog = { WATCHDOG_USEC: '1000000' };
      const cluster = await ClusterProcess.start({
        env: { NOTIFY_SOCKET: systemd.path, ...watchdog },
      });
      await eventually('READY', () => systemd.states.length > 0);
      for (const pid of cluster.workerPids) {
        expect(variablesOf(pid).join()).not.toMatch(/NOTIFY_SOCKET|WATCHDOG_/);
      }
      // A primary that was stopped for a while has timers that are late. It is well nevertheless.
      cluster.kill('SIGSTOP');
      await delay(3_000);
      cluster.kill('SIGCONT');
      cluster.kill('SIGHUP');
      await cluster.event('reload-ended');
      await eventually('READY again', () => systemd.states.length === 3);
      await eventually('three answers for the watchdog', () => systemd.count('WATCHDOG=1') >= 3);
      cluster.kill('SIGTERM');
      await cluster.exited();
      await eventually('STOPPING', () => systemd.states.at(-1) === 'STOPPING=1');

      expect(systemd.states).toEqual(['READY=1', 'RELOADING=1', 'READY=1', 'STOPPING=1']);
      expect(cluster.all('warning')).toEqual([]);
    });
  });

  describeWith(['systemd-analyze'], 'the units in docs/systemd.md', () => {
    const units = [
      ...readDocument('docs/systemd.md').matchAll(/^```ini\n# \S+\/(app\.\w+)\n(.*?)^```$/gms),
    ];

    it('are correct, and rated OK for their security', async () => {
      const cwd = temporaryDirectory();
      const files = units.map(([, name]) => name!);
      expect(files).toEqual(['app.service', 'app.socket']);
      for (const [, name, text] of units) {
        await writeFile(join(cwd, name!), text!.replaceAll('/usr/bin/node', NODE));
      }
      const analyze = (...args: string[]) =>
        runCommand('systemd-analyze', [...args, '--no-pager'], { cwd, env: plainEnvironment() });

      const verified = await analyze('verify', ...files.map((name) => `./${name}`));
      expect(verified).toEqual({ code: 0, stdout: '', stderr: '' });
      // The rating goes from 0 to 100, less is better.
      const rated = await analyze('security', '--offline=true', '--threshold=25', './app.service');
      expect(rated).toMatchObject({ code: 0, stderr: '' });
    });

    it('know the exit code of a wrong option', () => {
      expect(units[0]![2]).toContain('\nRestartPreventExitStatus=78\n');
    });
  });
}
