import { createRequire } from 'node:module';
import { hostname } from 'node:os';
import * as nest12 from '@nestjs/common';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ClusterLogger } from '../../../../src/module/cluster.logger.js';
import {
  type ClusterEventName,
  type ClusterEventMap,
  createEventFormat,
  createEventLog,
} from '../../../../src/contract/events/index.js';
import type { LogFormat, LogOptions } from '../../../../src/contract/options/index.js';

const nest11 = createRequire(new URL('../../../fixtures/nest-11/package.json', import.meta.url))(
  '@nestjs/common',
) as typeof nest12;

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

/** The text that `write` writes to the standard streams. */
function standardOutput(write: () => void) {
  const texts = { out: '', err: '' };
  for (const [name, stream] of [['out', process.stdout] as const, ['err', process.stderr] as const])
    vi.spyOn(stream, 'write').mockImplementation((text) => Boolean((texts[name] += String(text))));
  write();
  vi.restoreAllMocks();
  return texts;
}

describe('the format nest', () => {
  const TEXTS = {
    info: 'worker=2 gen=1 pid=4242 ready in 812 ms',
    warn: 'worker=2 restarting in 100 ms',
    error:
      'worker=2 gen=1 pid=4242 died: exited with code 1 (cause=crash, uptime=12.3 s): TypeError: x is undefined at boom (/app/main.js:3:7)',
  };
  const LOGGERS = [
    ['ConsoleLogger of Nest 12', nest12.ConsoleLogger],
    ['ConsoleLogger of Nest 11', nest11.ConsoleLogger],
    ['ClusterLogger outside of a worker', ClusterLogger],
  ] as const;
  const NO_COLOR = ['', '1', '0'];

  it.each(LOGGERS.flatMap((logger) => NO_COLOR.map((value) => [...logger, value] as const)))(
    'writes what %s does, to the same streams, with NO_COLOR=%j',
    (_, Logger, noColour) => {
      vi.stubEnv('NO_COLOR', noColour);
      const logger = new Logger('Cluster');
      const expected = standardOutput(() => {
        logger.log(TEXTS.info);
        logger.warn(TEXTS.warn);
        logger.error(TEXTS.error);
      });

      expect(expected.out.split('\n')).toHaveLength(2 + 1);
      expect(expected.out.includes('\u001b[32m')).toBe(noColour === '');
      expect(written({ format: 'nest' }, [INFO, WARN, DIED])).toEqual(expected);
      expect(written({ format: 'nest' }, [INFO, WARN, DIED], { isTTY: true })).toEqual(expected);
    },
  );
});

describe('the format pino', () => {
  /** The line that pino itself writes if an app logs the same fields. */
  const byPino = (level: 'info' | 'warn' | 'error', fields: object, text: string) => {
    let line = '';
    const logger = pino({}, { write: (chunk: string) => void (line += chunk) });
    logger[level](fields, text);
    return line;
  };
  const identity = { worker: 2, generation: 1, workerPid: 4242 };

  it('writes what pino does, all of it to standard output', () => {
    const { out, err } = written({ format: 'pino' }, [INFO, WARN]);

    expect(err).toBe('');
    expect(out).toBe(
      byPino(
        'info',
        { ...identity, event: 'worker-ready', bootMs: 812.4 },
        'worker=2 gen=1 pid=4242 ready in 812 ms',
      ) +
        byPino(
          'warn',
          { event: 'worker-restarting', slot: 2, delayMs: 100, failures: 1, degraded: false },
          'worker=2 restarting in 100 ms',
        ),
    );
  });

  it('has an error as pino has one, under the name err', () => {
    const error = Object.assign(new TypeError(ERROR.message), {
      stack: ERROR.stack,
      code: ERROR.code,
    });

    const { out } = written({ format: 'pino' }, [DIED]);

    const { msg, ...line } = JSON.parse(out) as Record<string, unknown>;
    expect(msg).toContain('died: exited with code 1');
    const { msg: _, ...expected } = JSON.parse(
      byPino(
        'error',
        {
          ...identity,
          event: 'worker-died',
          cause: 'crash',
          detail: 'exited with code 1',
          uptimeMs: 12_340,
          requests: [],
          blocked: null,
          err: error,
        },
        '',
      ),
    ) as Record<string, unknown>;
    expect(line).toEqual(expected);
  });

  it('has the text once, and no err where there is none', () => {
    const { out } = written({ format: 'pino' }, [FAILED]);

    expect(JSON.parse(out)).toEqual({
      level: 50,
      time: NOW,
      pid: process.pid,
      hostname: hostname(),
      event: 'failed',
      exitCode: 69,
      msg: 'giving up (exit code 69): no port',
    });
  });
});

describe.each(['text', 'json', 'pino', 'nest'] as const)('the level of a log in %s', (format) => {
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
  const FORMATS: LogFormat[] = ['text', 'json', 'pino', 'nest'];

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
      { format: 'pino', level: 'error', write },
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
      level: 40,
      event: 'warning',
      err: { type: 'Error', message: 'the disk is gone' },
      msg: expect.stringMatching(/^log\.write failed, .*: Error: the disk is gone at /),
    });
  });
});

const ERROR_OF_DISK = new Error('the disk is gone');
