import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import type { ClusterOptions } from 'nestjs-cluster';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { behaviour, runtimeBehaviour } from '../support/behaviour.js';
import { ClusterProcess, type StartOptions, stopAll } from '../support/cluster-process.js';
import { freePorts, holdPort } from '../support/free-ports.js';
import { request } from '../support/http-client.js';
import { ANNOUNCE_PROCESSES, startedProcesses } from '../support/started-processes.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const fixtures = join(import.meta.dirname, '../fixtures');
/** The primary, two tries of each slot, and one that is under way when the last fails. */
const mostProcesses = (workers: number): number => 1 + 2 * workers + 1;

afterEach(stopAll);

// Each case has one of the two values of CLUSTER_LOG_LEVEL.
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
      fault: 'onModuleInit rejects',
      level: 'info',
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
      frame: /at .*Injector\.\w+ \(.*\.c?js:\d+/,
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
  it.each<[string, (port: number) => ClusterOptions]>([
    ['workers', (port) => ({ port })],
    ['a single process', (port) => ({ port, workers: 0 })],
    ['the admin listener', (port) => ({ admin: { port } })],
  ])('exits with 69 and names the port that another process holds: %s', async (_, optionsOf) => {
    const port = await freePorts(1);
    const holder = await holdPort(port);
    onTestFinished(() => void holder.close());

    const message = await refusedAddress({ options: optionsOf(port) });

    expect(message).toContain('EADDRINUSE');
    expect(message).toContain(`127.0.0.1:${port}`);
  });

  it('refuses a unix socket that somebody listens on, and leaves it alone', async () => {
    const path = join(temporaryDirectory(), 'app.sock');
    const first = await ClusterProcess.start({ options: { path, workers: 1 } });

    const message = await refusedAddress({ options: { path, workers: 1 } });

    expect(message).toContain('EADDRINUSE');
    expect(message).toContain(path);
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

  // Each check has its row in unit/contract/options. The key and the value that was seen, then what
  // is allowed.
  it('is refused with 78 and one line: options', async () => {
    const options = { port: 'one', workers: 'all' };
    const line = await refusedConfiguration({ env: { TEST_OPTIONS: JSON.stringify(options) } });

    for (const part of ['port: "one" ', port, 'workers: "all" ', workers]) {
      expect(line).toContain(part);
    }
  });

  it('is refused with 78 and one line: something else than a function that creates the app', async () => {
    const line = await refusedConfiguration({ program: join(fixtures, 'not-a-factory.mjs') });

    expect(line).toContain(
      'bootstrap() expects a function that creates the app, but got an object',
    );
  });

  it('of the module ends the cluster with 78 at once', async () => {
    const cluster = new ClusterProcess({
      env: { TEST_MODULE_OPTIONS: '{"helth":false}' },
      execArgv: ANNOUNCE_PROCESSES,
    });

    expect(await cluster.exited()).toEqual({ code: 78, signal: null });

    expect(cluster.all('failed')).toHaveLength(1);
    expect(cluster.all('failed')[0]!.message).toContain('known options: health, metrics');
    // No restart can fix the error. The second worker may have been cancelled before it started.
    expect(startedProcesses(cluster).length).toBeLessThanOrEqual(1 + 2);
    expect(cluster.survivors()).toEqual([]);
  });
});
