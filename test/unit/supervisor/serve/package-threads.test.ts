import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { PackageThreads } from '../../../../src/supervisor/serve/package-threads.js';

const NAME = '@nestjs-cluster/probe';

/** Listens, and does what the app's test says in `mode`. */
const PROGRAM = `
const { createServer } = require('node:net');
const { parentPort, workerData: data } = require('node:worker_threads');
setInterval(() => Atomics.add(data.pulse, 0, 1), 50);
createServer((socket) => socket.on('data', (order) => {
  if (String(order) === 'die') throw new Error('told to die');
  if (String(order) === 'hang') for (;;);
  socket.end(JSON.stringify({ instance: data.instance, restarted: data.restarted, token: data.token }));
})).listen(data.path, () => parentPort.postMessage({ type: 'listening' }));
`;
const FAILS = `require('node:worker_threads').parentPort.postMessage({ type: 'failed', message: 'no socket' });
setInterval(() => {}, 1000);`;

let app: string;

beforeEach(() => {
  app = mkdtempSync(join(tmpdir(), 'threads-'));
  vi.stubEnv('XDG_RUNTIME_DIR', app);
  onTestFinished(() => {
    vi.unstubAllEnvs();
    rmSync(app, { recursive: true });
  });
});

function install(program: string): void {
  const directory = join(app, 'node_modules', NAME);
  mkdirSync(join(directory, 'dist'), { recursive: true });
  writeFileSync(join(directory, 'package.json'), JSON.stringify({ name: NAME }));
  writeFileSync(join(directory, 'dist/thread.cjs'), program);
}

function start(script = join(app, 'main.js')) {
  const emit = vi.fn();
  const warnings = () => emit.mock.calls.map(([, { message }]) => message as string);
  return { threads: new PackageThreads(emit, () => script), warnings };
}

/** The answer of the thread at that path to an order. */
async function order(path: string, text: string): Promise<Record<string, unknown>> {
  const { connect } = await import('node:net');
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect(path, () => socket.write(text));
    socket.on('error', () => {});
    socket.on('data', (chunk) => (answer += String(chunk)));
    socket.on('close', () => resolve(answer === '' ? {} : (JSON.parse(answer) as object as never)));
  });
}

describe('the thread of a package', () => {
  it('is started once, by the first request, from where the main script is', async () => {
    install(PROGRAM);
    const { threads } = start();
    const [one, other] = await Promise.all([threads.address(NAME), threads.address(NAME)]);
    expect(one).toEqual(other);
    expect(one.path.startsWith(join(app, 'nestjs-cluster', `${process.pid}.`))).toBe(true);
    expect(await order(one.path, 'tell')).toEqual({
      instance: `${process.pid}.1`,
      restarted: false,
      token: one.token,
    });
    expect((await start(app).threads.address(NAME)).path).not.toBe(one.path);
  });

  it('is refused if the package is not installed, until it is', async () => {
    const { threads } = start();
    await expect(threads.address(NAME)).rejects.toThrow(
      `${NAME} cannot be loaded from ${join(app, 'main.js')}; npm install ${NAME}`,
    );
    install(PROGRAM);
    expect((await threads.address(NAME)).token).toBeTruthy();
  });

  it('is restarted if it ends, or if its socket is removed', async () => {
    install(PROGRAM);
    const { threads, warnings } = start();
    const { path } = await threads.address(NAME);
    const again = (instance: number) =>
      vi.waitFor(async () => {
        const next = await threads.address(NAME);
        expect(await order(next.path, 'tell')).toMatchObject({
          instance: `${process.pid}.${instance}`,
          restarted: true,
        });
        return next.path;
      }, 20_000);
    await order(path, 'die');
    const second = await again(2);
    expect(existsSync(path)).toBe(false);
    expect(warnings()).toEqual([
      `the thread of ${NAME} ended, and restarts without its state: told to die`,
    ]);
    rmSync(join(app, 'nestjs-cluster'), { recursive: true });
    expect(await again(3)).not.toBe(second);
    expect(warnings()).toHaveLength(2);
  });

  it('is restarted if it hangs', async () => {
    install(PROGRAM);
    const { threads, warnings } = start();
    const { path } = await threads.address(NAME);
    await order(path, 'hang');
    await vi.waitFor(async () => {
      expect(warnings()).toHaveLength(1);
      expect(await order((await threads.address(NAME)).path, 'tell')).not.toEqual({});
    }, 20_000);
  });

  it('says why it cannot run, and warns of it once', async () => {
    install(FAILS);
    const { threads, warnings } = start();
    await expect(threads.address(NAME)).rejects.toThrow('no socket');
    await new Promise((resolve) => setTimeout(resolve, 600)); // the first backoff is 100 ms
    await expect(threads.address(NAME)).rejects.toThrow('no socket');
    expect(warnings()).toEqual([
      `the thread of ${NAME} ended, and restarts without its state: no socket`,
    ]);
  });

  it('removes the sockets that killed primaries left', async () => {
    install(PROGRAM);
    const directory = join(app, 'nestjs-cluster');
    mkdirSync(directory, { mode: 0o700 });
    const { createServer } = await import('node:net');
    const server = createServer().listen(join(directory, '999999999.0123abcd.thread'));
    await new Promise((resolve) => server.once('listening', resolve));
    onTestFinished(() => void server.close());
    await start().threads.address(NAME);
    expect(readdirSync(directory).filter((file) => file.startsWith('9999'))).toEqual([]);
  });
});
