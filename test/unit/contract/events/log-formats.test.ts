import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type ClusterEventName,
  type ClusterEventMap,
  createEventFormat,
  createEventLog,
} from '../../../../src/contract/events/index.js';
import type { LogFormat, LogOptions } from '../../../../src/contract/options/index.js';

const NOW = new Date('2026-03-04T05:06:07.890Z').getTime();
const WORKER = { slot: 2, pid: 4242, generation: 1 };
const ERROR = {
  name: 'TypeError',
  message: 'x is undefined',
  stack: 'TypeError: x is undefined\n    at boom (/app/main.js:3:7)',
  code: 'E_CATS',
};

type AnyEvent = { [N in ClusterEventName]: [N, ClusterEventMap[N]] }[ClusterEventName];

const INFO: AnyEvent = ['worker-ready', { worker: WORKER, bootMs: 812.4 }];
const WARN: AnyEvent = [
  'worker-restarting',
  { slot: 2, delayMs: 100, failures: 1, degraded: false },
];
const DIED: AnyEvent = [
  'worker-died',
  {
    worker: WORKER,
    cause: 'crash',
    detail: 'exited with code 1',
    uptimeMs: 12_340,
    error: ERROR,
    requests: [],
    blocked: null,
  },
];
const FAILED: AnyEvent = ['failed', { message: 'no port', exitCode: 69, error: null }];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: NOW });
  vi.stubEnv('NO_COLOR', '');
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  vi.unstubAllEnvs();
});

/** The text that a log writes to each stream. */
function written(options: LogOptions, events: readonly AnyEvent[], { isTTY = false } = {}) {
  const texts = { out: '', err: '' };
  const streamTo = (name: 'out' | 'err') => ({
    isTTY,
    write: (text: string) => void (texts[name] += text),
  });
  const emit = createEventLog(
    { format: 'text', level: 'info', write: undefined, ...options } as never,
    { out: streamTo('out'), err: streamTo('err') },
  );
  for (const [name, event] of events) emit(name, event as never);
  return texts;
}

describe.each(['text', 'json'] as const)('the level of a log in %s', (format) => {
  const events = [INFO, WARN, DIED];
  const linesOf = ({ out, err }: { out: string; err: string }) =>
    (out + err).split('\n').slice(0, -1);

  it.each([
    ['info', 3],
    ['warn', 2],
    ['error', 1],
    ['silent', 0],
  ] as const)('%s leaves out what is below it', (level, lines) => {
    expect(linesOf(written({ format, level }, events))).toHaveLength(lines);
  });

  it('never leaves out why the cluster gives up', () => {
    expect(linesOf(written({ format, level: 'silent' }, [FAILED]))).toMatchObject([
      expect.stringContaining('giving up'),
    ]);
  });

  it('is also that of lines for a stream', () => {
    const warning = { message: 'lost' };
    expect(
      createEventFormat({ format, level: 'warn' })('warning', warning, { isTTY: false }),
    ).toMatch(/\n$/);
    expect(
      createEventFormat({ format, level: 'error' })('warning', warning, { isTTY: false }),
    ).toBe('');
  });
});

describe('a function that writes the log', () => {
  const FORMATS: LogFormat[] = ['text', 'json'];

  it.each(FORMATS)(
    'gets each line of %s that is loud enough, and its level; the streams get none',
    (format) => {
      vi.stubEnv('NO_COLOR', '1');
      const plain = written({ format }, [WARN, DIED]);
      vi.stubEnv('NO_COLOR', '');
      const write = vi.fn<(line: string, level: string) => void>();

      const streams = written({ format, level: 'warn', write }, [INFO, WARN, DIED], {
        isTTY: true,
      });

      expect(streams).toEqual({ out: '', err: '' });
      const lines = write.mock.calls.map(([line]) => line);
      expect(lines.join('\n')).toBe((plain.out + plain.err).trimEnd());
      expect(write.mock.calls.map(([, level]) => level)).toEqual(['warn', 'error']);
    },
  );

  it.each([
    [
      'throws',
      () => {
        throw ERROR_OF_DISK;
      },
    ],
    ['rejects', () => Promise.reject(ERROR_OF_DISK)],
  ])('that %s ends nothing, and is told once on standard error', async (_, fail) => {
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
      message: expect.stringMatching(/^log\.write failed, .*: Error: the disk is gone at /),
    });
  });
});

const ERROR_OF_DISK = new Error('the disk is gone');
