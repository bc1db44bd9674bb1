import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { WORKER_VARIABLE } from '../../../../src/contract/process/assignment.js';
import { BootWatch } from '../../../../src/worker/boot/boot-output.js';
import { NESTS } from '../../support/nests.js';

/** Does what Nest does with an error of its container: logs it, and ends the process. */
function failIn({ ConsoleLogger }: (typeof NESTS)[number]['common'], printsError: boolean) {
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

describe.each(NESTS)(
  'an error that $nest logs as JSON before it ends the process',
  ({ common }) => {
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
  },
);

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

type Watch = (prints: boolean, report: () => void) => void | Promise<unknown>;

const byBootWatch: Watch = (prints, report) => {
  const watch = new BootWatch(prints, report, () => {});
  onTestFinished(() => watch.end());
};

const byEarlyBoot: Watch = (printsBootError, report) => {
  const assignment = { slot: 0, generation: 0, primaryPid: process.ppid, ownArguments: 0 };
  vi.stubEnv(WORKER_VARIABLE, JSON.stringify({ ...assignment, printsBootError }));
  process.send = report as never;
  vi.resetModules();
  return import('../../../../src/worker/boot/early-boot.js');
};

it.each([
  ['while the main file loads', byEarlyBoot],
  ['from then on', byBootWatch],
])('an uncaught error is printed only by a worker that may print it: %s', async (_, watch) => {
  const send: unknown = Reflect.get(process, 'send');
  const write: unknown = Reflect.get(process.stderr, 'write');
  onTestFinished(() => {
    Reflect.set(process, 'send', send);
    Reflect.set(process.stderr, 'write', write);
  });
  for (const prints of [true, false]) {
    const report = vi.fn();
    await watch(prints, report);
    const onUncaught = process.listeners('uncaughtExceptionMonitor').at(-1)!;
    vi.spyOn(process, 'listenerCount').mockReturnValue(0); // the app has no handler
    const once = vi.spyOn(process, 'once').mockReturnThis();
    onUncaught(new Error('no price list'), 'uncaughtException');
    process.off('uncaughtExceptionMonitor', onUncaught);
    expect(report).toHaveBeenCalledOnce();
    // With a handler, Node prints nothing.
    const handlers = once.mock.calls.filter(([event]) => event === 'uncaughtException');
    expect(handlers).toHaveLength(prints ? 0 : 1);
    vi.restoreAllMocks();
  }
});
