import cluster, { type Worker } from 'node:cluster';
import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import { describe, expect, it, vi } from 'vitest';
import { WORKER_VARIABLE } from '../../../src/contract/process/assignment.js';
import { forkWorker, readLines } from '../../../src/primary/fork-worker.js';
import type { Program } from '../../../src/primary/program.js';
import { NO_PID } from '../../../src/primary/worker-handle.js';

const RELEASE = { generation: 3, script: '/app/main.js', cwd: import.meta.dirname };

function forkBy(revive: () => typeof RELEASE, printsBootError = true) {
  const report = vi.fn();
  const handle = forkWorker(
    { type: 'fork', worker: 1, slot: 2, workers: 4, release: RELEASE, printsBootError },
    { revive } as unknown as Program,
    { watchdog: false, log: { format: 'text', level: 'info', write: undefined } },
    report,
  );
  return { handle, report };
}

/** Forks with a fake of node:cluster, whose worker has a listener of Node. */
function fork(pid: number | undefined, printsBootError = true) {
  const process = Object.assign(new EventEmitter(), { pid, stdio: [], send: vi.fn() });
  const worker = Object.assign(new EventEmitter(), { id: 7, process }) as unknown as Worker;
  worker.on('message', () => {});
  vi.spyOn(cluster, 'setupPrimary').mockReturnValue();
  const forked = vi.spyOn(cluster, 'fork').mockReturnValue(worker);
  const { handle, report } = forkBy(() => RELEASE, printsBootError);
  const [environment] = forked.mock.calls[0] as [Record<string, string>];
  return { worker, handle, report, environment };
}

describe('a worker that cannot be started', () => {
  const error = new Error('too many open files');
  const END = [
    [{ type: 'channel-error', error }],
    [{ type: 'exit', exit: { code: null, signal: null } }],
  ];

  it('exits at once, with the error of its preparation', async () => {
    const { handle, report } = forkBy(() => {
      throw error;
    });
    expect(handle.identity).toEqual({ slot: 2, generation: 3, pid: NO_PID });
    await vi.waitFor(() => expect(report.mock.calls).toEqual(END));
  });

  it('exits with the error of Node, and leaves nothing in node:cluster', () => {
    cluster.workers![7] = {} as Worker;
    const { worker, handle, report } = fork(undefined);
    worker.emit('error', error);
    worker.emit('error', new Error('another'));
    expect([report.mock.calls, handle.identity.pid]).toEqual([END, NO_PID]);
    expect(cluster.workers).not.toHaveProperty('7');
  });
});

describe('a forked worker', () => {
  it.each([true, false])('knows whether it prints the error of its start: %s', (prints) => {
    const { environment } = fork(4711, prints);
    const assignment: unknown = JSON.parse(environment[WORKER_VARIABLE]!);
    expect(assignment).toMatchObject({ slot: 2, printsBootError: prints });
  });

  const OURS = { ns: 'nestjs-cluster', v: 1, type: 'leaving' };
  const OF_THE_APP = { type: 'socket' };

  it.each([
    { what: 'a message of this package', message: OURS, listens: true, closed: 0, passed: true },
    { what: 'a message that the app expects', message: OF_THE_APP, listens: true, closed: 0 },
    { what: 'a message without a listener', message: OF_THE_APP, listens: false, closed: 1 },
  ])('sends a handle with $what: closed $closed times', ({ message, listens, closed, passed }) => {
    for (const listener of ['worker', 'cluster'] as const) {
      const { worker, report } = fork(4711);
      const own = () => {};
      const emitter: EventEmitter = listener === 'worker' ? worker : cluster;
      if (listens) emitter.on('message', own);
      const handle = { close: vi.fn() };
      worker.emit('message', message, handle as never);
      emitter.off('message', own);
      expect(handle.close).toHaveBeenCalledTimes(closed);
      const reported = { type: 'message', message, ...(passed && { handle }) };
      expect(report).toHaveBeenCalledExactlyOnceWith(reported);
    }
  });
});

describe('the reports of a watchdog', () => {
  /** The reports in `chunks`, each written separately. */
  async function reportsIn(...chunks: (string | Buffer)[]): Promise<unknown[]> {
    const pipe = new PassThrough();
    const reports: unknown[] = [];
    readLines(pipe, (message) => reports.push(message));
    const ended = new Promise((resolve) => pipe.on('end', resolve));
    for (const chunk of chunks) pipe.write(chunk);
    pipe.end();
    await ended;
    expect(() => pipe.emit('error', new Error('EPIPE'))).not.toThrow();
    return reports;
  }
  const BLOCKED = { type: 'blocked', forMs: 5_000, frames: ['spin (/app/ü.js:3:7)'] };
  const RESUMED = { type: 'resumed' };
  const line = (message: unknown) => `${JSON.stringify(message)}\n`;

  it('may be split anywhere, also within a character', async () => {
    const bytes = Buffer.from(line(BLOCKED) + line(RESUMED));
    const each = Array.from(bytes, (byte) => Buffer.from([byte]));
    expect(await reportsIn(...each)).toEqual([BLOCKED, RESUMED]);
    expect(await reportsIn(bytes)).toEqual([BLOCKED, RESUMED]);
  });

  it('are used only when their line is complete', async () => {
    expect(await reportsIn(line(RESUMED), JSON.stringify(BLOCKED))).toEqual([RESUMED]);
  });

  it.each(['\n', 'what\n', 'null\n', '\u0000\u0001\n'])(
    'are dropped if they are not JSON, and later reports are not: %j',
    async (garbage) => {
      expect(await reportsIn(garbage + line(RESUMED))).toEqual([RESUMED]);
    },
  );

  it('are dropped if they are longer than any report', async () => {
    const longest = { ...BLOCKED, frames: Array<string>(20).fill('x'.repeat(10_000)) };
    const longer = line({ ...BLOCKED, frames: ['x'.repeat(1024 * 1024)] });
    const chunks = longer.match(/[^]{1,65536}/g)!;
    expect(await reportsIn(...chunks, line(longest))).toEqual([longest]);
  });
});
