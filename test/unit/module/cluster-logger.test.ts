import { ConsoleLogger, type ConsoleLoggerOptions } from '@nestjs/common';
import { describe, expect, it, vi } from 'vitest';
import { ClusterLogger } from '../../../src/module/cluster.logger.js';

const { pid } = process;

const NO_MICE = new Error('no mice');

/** As in a worker. */
class LoggerOfW3 extends ClusterLogger {
  protected override readonly worker = { slot: 3, pid, generation: 2 };
}

const TEXT: ConsoleLoggerOptions[] = [{ colors: false }, { colors: true, prefix: `cats-${pid}` }];
const JSON_LINES: ConsoleLoggerOptions[] = [{ json: true }, { json: true, flattenParams: true }];

/** Everything that a logger writes, at one moment. */
function written(Logger: typeof ConsoleLogger, options: ConsoleLoggerOptions): string {
  vi.useFakeTimers({ toFake: ['Date'], now: 0 });
  const lines: unknown[] = [];
  for (const stream of [process.stdout, process.stderr]) {
    vi.spyOn(stream, 'write').mockImplementation((line) => lines.push(line) > 0);
  }
  const logger = new Logger('Cats', options);
  logger.log('9 - lives');
  logger.warn('hungry', { worker: 'tom', bowls: 0 });
  logger.error(NO_MICE, 'Error\n    at catch (cats.js:1:1)');
  vi.restoreAllMocks();
  return lines.join('');
}

describe('ClusterLogger', () => {
  it.each([...TEXT, ...JSON_LINES])(
    'writes as Nest does where there is no worker: %j',
    (options) => {
      expect(written(ClusterLogger, options)).toBe(written(ConsoleLogger, options));
    },
  );

  it.each(TEXT)('has the slot behind the pid in text: %j', (options) => {
    const expected = written(ConsoleLogger, options).replaceAll(`${pid}  - `, `${pid} w3  - `);

    expect(expected).toContain(`] ${pid} w3  - `);
    expect(written(LoggerOfW3, options)).toBe(expected);
  });

  it.each(JSON_LINES)('has the slot and the generation in JSON: %j', (options) => {
    const linesOf = (Logger: typeof ConsoleLogger) =>
      written(Logger, options)
        .split('\n')
        .filter((line) => line.startsWith('{'))
        .map((line) => JSON.parse(line) as object);

    const own = linesOf(ConsoleLogger);
    expect(own.length).toBeGreaterThan(2);
    expect(linesOf(LoggerOfW3)).toEqual(own.map((line) => ({ ...line, worker: 3, generation: 2 })));
  });
});
