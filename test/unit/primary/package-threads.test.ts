import { existsSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { PackageThreads } from '../../../src/primary/package-threads.js';
import { temporaryDirectory } from '../../support/temporary-directory.js';

const NAME = '@nestjs-cluster/probe';

/** Says whether it was restarted, and ends when it is told so. */
const PROGRAM = `
const { createServer } = require('node:net');
const { parentPort, workerData: { path, restarted } } = require('node:worker_threads');
createServer((socket) => socket.on('data', (order) => {
  if (String(order) === 'die') throw new Error('told to die');
  socket.end(String(restarted));
})).listen(path, () => parentPort.postMessage(null));
`;

let app: string;

beforeEach(() => {
  app = temporaryDirectory();
  vi.stubEnv('TMPDIR', app);
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
async function order(path: string, text: string): Promise<string> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect(path, () => socket.write(text));
    socket.on('error', () => {});
    socket.on('data', (chunk) => (answer += String(chunk)));
    socket.on('close', () => resolve(answer));
  });
}

describe('the thread of a package', () => {
  it('is started once, by the first request, from where the main script is', async () => {
    install(PROGRAM);
    const { threads } = start();
    const [one, other] = await Promise.all([threads.path(NAME), threads.path(NAME)]);
    expect(one).toBe(other);
    expect(await order(one, 'tell')).toBe('false');
    expect(statSync(dirname(one)).mode & 0o777).toBe(0o700);
    expect(await start(app).threads.path(NAME)).not.toBe(one);
  });

  it('is refused if the package is not installed, until it is', async () => {
    const { threads } = start();
    await expect(threads.path(NAME)).rejects.toThrow(
      `${NAME} cannot be loaded from ${join(app, 'main.js')}; run npm install ${NAME}`,
    );
    install(PROGRAM);
    expect(await threads.path(NAME)).toContain(app);
  });

  it('is restarted if it ends, without the files of its release', async () => {
    install(PROGRAM);
    const { threads, warnings } = start();
    const path = await threads.path(NAME);
    rmSync(join(app, 'node_modules'), { recursive: true });
    await order(path, 'die');
    await vi.waitFor(async () => {
      expect(await order(await threads.path(NAME), 'tell')).toBe('true');
    }, 5_000);
    expect(existsSync(path)).toBe(false);
    expect(warnings()).toEqual([
      `the thread of ${NAME} ended, and restarts without its state: told to die`,
    ]);
  });

  it('says why it cannot run, and is tried again after a backoff', async () => {
    install(`throw new Error('no socket');`);
    const { threads, warnings } = start();
    await expect(threads.path(NAME)).rejects.toThrow('no socket');
    await expect(threads.path(NAME)).rejects.toThrow('no socket');
    expect(warnings()).toEqual([
      `the thread of ${NAME} ended, and restarts without its state: no socket`,
    ]);
    await vi.waitFor(async () => {
      await threads.path(NAME).catch(() => {});
      expect(warnings()).toHaveLength(2);
    }, 5_000);
  });
});
