import { createRequire } from 'node:module';
import * as nest12 from '@nestjs/common';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { WORKER_VARIABLE } from '../../../../src/contract/process/assignment.js';
import { BootWatch } from '../../../../src/worker/boot/boot-output.js';

type Nest = Pick<typeof nest12, 'ConsoleLogger'>;

const nest11 = createRequire(new URL('../fixtures/nest-11/app.mjs', import.meta.url))(
  '@nestjs/common',
) as Nest;

/** Does what Nest does with an error of its container: logs it, and ends the process. */
function failIn({ ConsoleLogger }: Nest, printsError: boolean) {
  const printed = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  const failed = vi.fn();
  const watch = new BootWatch(printsError, failed, () => {});
  const logger = new ConsoleLogger({ json: true });
  logger.error('not reachable', 'Redis');
  // Longer than what is kept of the output.
  const error = Object.assign(new TypeError('no "DOGS"'), { hint: '.'.repeat(20_000) });
  logger.error(error, 'ExceptionHandler');
  process.listeners('exit').at(-1)!(1);
  watch.end();
  return { lines: printed.mock.calls.map(([line]) => String(line)), failed, watch };
}

afterEach(() => vi.restoreAllMocks());

describe.each([
  { nest: 'Nest 12', common: nest12 as Nest },
  { nest: 'Nest 11', common: nest11 },
])('an error that $nest logs as JSON before it ends the process', ({ common }) => {
  it('is printed by no worker but the one that is to print it', () => {
    const silent = failIn(common, false);
    expect(silent.lines).toEqual([expect.stringContaining('not reachable')]);
    vi.restoreAllMocks();
    const printing = failIn(common, true);
    expect(printing.lines.filter((line) => line.includes('no \\"DOGS\\"'))).toHaveLength(1);
    expect(printing.watch.prints).toBe(false);
  });

  it('is reported by its name, message and stack', () => {
    const { failed } = failIn(common, false);
    expect(failed).toHaveBeenCalledExactlyOnceWith({
      name: 'TypeError',
      message: 'no "DOGS"',
      stack: expect.stringMatching(/^TypeError: no "DOGS"\n\s+at .*boot-watch\.test\.ts/),
    });
  });
});

it('an uncaught error is reported, and not the exit that follows it', () => {
  const failed = vi.fn();
  const watch = new BootWatch(true, failed, () => {});
  const onExit = process.listeners('exit').at(-1)!;
  const onUncaught = process.listeners('uncaughtExceptionMonitor').at(-1)!;

  onUncaught(new Error('no price list'), 'uncaughtException');
  if (process.listeners('exit').includes(onExit)) onExit(1);

  watch.end();
  expect(failed).toHaveBeenCalledExactlyOnceWith(
    expect.objectContaining({ message: 'no price list' }),
  );
});

/** Starts a watch as `BootWatch` and as `early-boot.ts`, and the watch sees an uncaught error. */
const WATCHES: readonly [string, (prints: boolean) => void | Promise<unknown>][] = [
  [
    'once the package is loaded',
    (prints) =>
      void new BootWatch(
        prints,
        () => {},
        () => {},
      ),
  ],
  [
    'while the main file loads',
    (printsBootError) => {
      const assignment = { slot: 0, generation: 0, primaryPid: process.ppid, printsBootError };
      vi.stubEnv(WORKER_VARIABLE, JSON.stringify({ ...assignment, ownArguments: 0 }));
      vi.resetModules();
      return import('../../../../src/worker/boot/early-boot.js');
    },
  ],
];

it.each(WATCHES)(
  'only the worker with the right to print lets Node print an uncaught error, %s',
  async (_, watch) => {
    onTestFinished(() => void vi.unstubAllEnvs());
    const { write } = process.stderr;
    const send = vi.fn();
    const before = process.send;
    process.send = send as never;
    for (const prints of [true, false]) {
      await watch(prints);
      const onUncaught = process.listeners('uncaughtExceptionMonitor').at(-1)!;
      vi.spyOn(process, 'listenerCount').mockReturnValue(0);
      const others = process.listeners('uncaughtException');
      onUncaught(new Error('no price list'), 'uncaughtException');
      const added = process.listeners('uncaughtException').filter((each) => !others.includes(each));
      // With a listener, Node prints nothing. The listener ends the process.
      expect(added).toHaveLength(prints ? 0 : 1);
      for (const each of added) process.off('uncaughtException', each);
      process.off('uncaughtExceptionMonitor', onUncaught);
      vi.restoreAllMocks();
    }
    process.send = before;
    process.stderr.write = write;
  },
);
