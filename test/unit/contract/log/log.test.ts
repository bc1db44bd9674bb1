import { beforeEach, describe, expect, it, vi } from 'vitest';
import { createEventLog, warningLine } from '../../../../src/contract/log/log.js';
import type { LogOptions } from '../../../../src/contract/options/resolve.js';
import { died, type NamedEvent, startLog, WORKER } from '../../support/cluster-events.js';

const NOW = new Date('2026-03-04T05:06:07.890Z').getTime();

const INFO: NamedEvent = ['worker-ready', { worker: WORKER, bootMs: 812.4 }];
const WARN: NamedEvent = [
  'worker-restarting',
  { slot: 2, delayMs: 100, failures: 1, degraded: false },
];
const DIED: NamedEvent = ['worker-died', died()];
const FAILED: NamedEvent = ['failed', { message: 'no port', exitCode: 69, error: null }];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: NOW });
  vi.stubEnv('NO_COLOR', '');
});

/** The text that a log writes to each stream. */
function written(options: LogOptions, events: readonly NamedEvent[], isTTY = false) {
  const log = startLog(options, { isTTY });
  for (const event of events) log.emit(...event);
  return log.written;
}

it.each([
  ['info', 3],
  ['warn', 2],
  ['error', 1],
  ['silent', 0],
] as const)(
  'the level %s leaves out what is below it, and never why the cluster gives up',
  (level, lines) => {
    const linesOf = ({ out, err }: { out: string; err: string }) =>
      (out + err).split('\n').slice(0, -1);
    expect(linesOf(written({ level }, [INFO, WARN, DIED]))).toHaveLength(lines);
    expect(linesOf(written({ level }, [FAILED]))).toMatchObject([
      expect.stringContaining('giving up'),
    ]);
    const warning = warningLine({ format: 'text', level }, { message: 'lost' }, { isTTY: false });
    expect(warning !== '').toBe(lines >= 2);
  },
);

describe('a function that writes the log', () => {
  it('gets each line that is loud enough, and its level; the streams get none', () => {
    vi.stubEnv('NO_COLOR', '1');
    const plain = written({}, [WARN, DIED]);
    vi.stubEnv('NO_COLOR', '');
    const write = vi.fn<(line: string, level: string) => void>();

    const streams = written({ level: 'warn', write }, [INFO, WARN, DIED], true);

    expect(streams).toEqual({ out: '', err: '' });
    const lines = write.mock.calls.map(([line]) => line);
    expect(lines.join('\n')).toBe((plain.out + plain.err).trimEnd());
    expect(write.mock.calls.map(([, level]) => level)).toEqual(['warn', 'error']);
  });

  it.each([
    [
      'throws',
      () => {
        throw ERROR_OF_DISK;
      },
    ],
    ['rejects', () => Promise.reject(ERROR_OF_DISK)],
  ])('that %s ends nothing, and is reported once on standard error', async (_, fail) => {
    const write = vi.fn(fail as () => void);
    const errors: string[] = [];
    const emit = createEventLog(
      { format: 'json', level: 'error', write },
      {
        out: { isTTY: false, write: () => expect.unreachable() },
        err: { isTTY: false, write: (text) => errors.push(text) },
      },
    );

    for (let i = 0; i < 3; i++) {
      emit(...DIED);
      await Promise.resolve();
    }

    expect(write).toHaveBeenCalledTimes(3);
    expect(errors).toHaveLength(1);
    expect(JSON.parse(errors[0]!)).toMatchObject({
      level: 'warn',
      event: 'warning',
      error: { name: 'Error', message: 'the disk is gone' },
      message: expect.stringMatching(/^log\.write failed and .*: Error: the disk is gone at /),
    });
  });
});

const ERROR_OF_DISK = new Error('the disk is gone');
