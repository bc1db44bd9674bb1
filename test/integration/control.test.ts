import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, lstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { runtimeBehaviour } from '../support/behaviour.js';
import { ClusterProcess, NODE, stopAll } from '../support/cluster-process.js';
import { MAIN } from '../support/command-line.js';
import { eventually } from '../support/eventually.js';
import { request } from '../support/http-client.js';
import { describeOnce, itOnce } from '../support/once.js';
import { type CommandResult, plainEnvironment, runCommand } from '../support/run-command.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

/** Not a user of this machine who has anything. */
const NOBODY = '65534';

describe('a running cluster', () => {
  const runtime = mkdtempSync(join(tmpdir(), 'nestjs-cluster-'));
  // Other clusters of this user are none of the test.
  const env = { XDG_RUNTIME_DIR: runtime, TMPDIR: runtime };
  const directory = join(runtime, 'nestjs-cluster');
  const block = join(runtime, 'block');
  let cluster: ClusterProcess;

  beforeAll(async () => {
    cluster = await ClusterProcess.start({
      options: { name: 'shop', workers: 2 },
      env: {
        ...env,
        ...runtimeBehaviour('crashes#blocksOnSignal'),
        TEST_BLOCK: block,
        DATABASE_URL: 'postgres://shop:SECRET@db/shop',
      },
    });
  });

  afterAll(async () => {
    await stopAll();
    rmSync(runtime, { recursive: true });
  });

  const command = (...args: string[]): Promise<CommandResult> =>
    runCommand(NODE, [MAIN, ...args], { cwd: '/', env: { ...plainEnvironment(), ...env } });
  /** Runs a command that must succeed, and returns what it prints. */
  const done = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await command(...args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return stdout;
  };
  const json = async (...args: string[]) => JSON.parse(await done(...args, '--json'));
  const socket = () => join(directory, `shop.${cluster.pid}.sock`);

  it('is found, by name, by pid and by the path of its socket, which is its user’s alone', async () => {
    expect(readdirSync(directory).filter((name) => name.endsWith('.sock'))).toEqual([
      `shop.${cluster.pid}.sock`,
    ]);
    expect([lstatSync(directory).mode & 0o777, lstatSync(socket()).mode & 0o777]).toEqual([
      0o700, 0o600,
    ]);
    expect(await json('ps')).toMatchObject([{ name: 'shop', pid: cluster.pid, path: socket() }]);
    expect(await done('ps')).toMatch(new RegExp(`^name .*\\nshop +${cluster.pid} +2/2 `));
    for (const name of ['shop', String(cluster.pid), socket()]) {
      const status = await json('status', '--cluster', name);
      expect(status).toMatchObject({ name: 'shop', pid: cluster.pid, cluster: { ready: 2 } });
      expect(JSON.stringify(status)).not.toContain('SECRET');
    }
    expect(await command('status', '-c', 'shop\u001b[2J')).toMatchObject({
      code: 69,
      stderr: expect.not.stringContaining('\u001b'),
    });
  });

  it('is left in peace by a command whose output no one reads', async () => {
    const script = '{ "$0" "$1" ps; echo $? >&2; } | true';
    const { stderr } = await runCommand('sh', ['-c', script, NODE, MAIN], {
      cwd: '/',
      env: { ...plainEnvironment(), ...env },
    });
    expect(stderr).toBe('0\n');
  });

  it('lets nobody in who is another user', async () => {
    const script = `require('net').connect(${JSON.stringify(socket())}).on('connect',()=>console.log('in')).on('error',({code})=>console.log(code))`;
    const result = await runCommand(
      'setpriv',
      [`--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups', NODE, '-e', script],
      { cwd: '/', env: plainEnvironment() },
    );
    expect(result.stdout.trim()).toBe('EACCES');
  });

  itOnce('is changed while it serves', async () => {
    const [, old] = cluster.workerPids;
    expect(await done('restart', '1')).toMatch(/worker 1 restarted\n$/);
    expect(cluster.workerPids[1]).not.toBe(old);
    await cluster.event('worker-stopped', ({ pid, cause }) => pid === old && cause === 'restart');
    expect(await command('restart', '7')).toMatchObject({
      code: 1,
      stderr: 'error: worker 7 was not restarted: slot 7 does not exist: the slots are 0, 1\n',
    });
    expect(await json('scale', '+1')).toEqual({ from: 2, workers: 3, ready: 3 });
    expect(await done('scale', '-1')).toMatch(/scaled from 3 to 2 workers\n$/);
    expect(await command('scale', '0')).toMatchObject({ code: 1 });
    expect(await command('scale', 'many')).toMatchObject({ code: 64 });

    const both = await Promise.all([command('reload'), command('reload')]);
    const [first, second] = both.toSorted((a, b) => a.code! - b.code!);
    expect(first!.stdout).toMatch(/^cluster shop \(pid \d+\)\nreload gen=1 completed\n$/);
    expect(second).toMatchObject({ code: 1 });
    expect(second!.stderr).toMatch(/^error: a reload is already in progress/);
    expect((await request(cluster.url, '/hello')).status).toBe(200);
  });

  itOnce('is seen by top on a terminal, until Ctrl-C', async () => {
    const top = spawn('script', ['-qec', `${NODE} ${MAIN} top`, '/dev/null'], {
      cwd: '/', // outside any project, so the only cluster is meant
      env: { ...plainEnvironment(), ...env, TERM: 'xterm' },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    let screen = '';
    top.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      screen += chunk;
      // Once: what is written to a terminal that has ended is an error.
      if (top.stdin.writable && /req\/s[^]*req\/s/.test(screen)) top.stdin.end('\u0003');
    });
    const [code] = await once(top, 'close');
    expect(code).toBe(130);
    expect(screen).toContain('up, 2/2 workers ready, generation 1');
  });

  itOnce('is not waited for while its primary is stopped', async () => {
    cluster.kill('SIGSTOP');
    try {
      for (const args of [['status'], ['reload'], ['ps', '--json']]) {
        const { code, stdout, stderr } = await command(...args);
        expect(code).toBe(args[0] === 'ps' ? 0 : 69);
        expect(stdout + stderr).toContain(
          'the primary does not answer: it is blocked, or stopped by SIGSTOP',
        );
      }
    } finally {
      cluster.kill('SIGCONT');
    }
    expect(cluster.all('reload-started')).toHaveLength(1);
  });

  it('is shown until it has stopped, and leaves no socket', async () => {
    const show = (...args: string[]) => {
      const child = spawn(NODE, [MAIN, 'top', ...args], {
        cwd: '/',
        env: { ...plainEnvironment(), ...env },
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      let text = '';
      child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      const exit = once(child, 'exit');
      return { text: () => eventually('a status', () => text), exit };
    };
    const [top, plain] = [show('--json'), show()];
    const [status] = (await top.text()).split('\n');
    expect(JSON.parse(status!)).toMatchObject({
      cluster: { ready: 2 },
      primary: { pid: cluster.pid },
    });
    expect(await plain.text()).toContain('up, 2/2 workers ready');
    expect(await done('stop')).toMatch(/stopped\n$/);
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    expect([await top.exit, await plain.exit]).toEqual([
      [69, null],
      [69, null],
    ]);
    expect(existsSync(socket())).toBe(false);
    expect(await command('ps')).toMatchObject({ code: 69, stdout: '' });
  });
});

describeOnce('a cluster whose control socket cannot be made', () => {
  afterEach(stopAll);

  it('says so in one warning and serves', async () => {
    const path = join(temporaryDirectory(), 'missing/a.sock');
    const cluster = await ClusterProcess.start({ options: { workers: 1, control: { path } } });
    expect((await request(cluster.url, '/hello')).status).toBe(200);
    expect(cluster.all('warning').map(({ message }) => message)).toEqual([
      expect.stringMatching(/^no control socket: ENOENT.*; control: false disables the socket$/),
    ]);
  });
});
