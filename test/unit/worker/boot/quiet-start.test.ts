import { stripVTControlCharacters } from 'node:util';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { quietStart } from '../../../../src/worker/boot/boot-output.js';
import { NESTS } from '../../support/nests.js';

describe.each(NESTS)('a quiet start of $nest', ({ common: { Logger, ConsoleLogger } }) => {
  /** Lines that are written while `act` runs, without colours, times and pids. */
  function linesOf(act: () => void): string[] {
    const lines: string[] = [];
    const take = (chunk: unknown) => {
      lines.push(
        stripVTControlCharacters(String(chunk))
          .trimEnd()
          .replace(/^.*(?=\[Cats)/, ''),
      );
      return true;
    };
    vi.spyOn(process.stdout, 'write').mockImplementation(take);
    vi.spyOn(process.stderr, 'write').mockImplementation(take);
    act();
    vi.restoreAllMocks();
    return lines;
  }
  const logAll = () => {
    const logger = new Logger('Cats');
    logger.log('log');
    logger.debug('debug');
    logger.warn('warn');
    logger.error('error');
  };
  // Other tests may have changed the logger.
  beforeEach(() => {
    Logger.overrideLogger(new ConsoleLogger());
    Reflect.set(Logger, 'logLevels', undefined);
  });
  const loggerBefore = () => Reflect.get(Logger, 'staticInstanceRef') as unknown;

  it('logs warnings and errors, and everything again when it is over', () => {
    const logger = new Logger('Cats');
    const before = loggerBefore();
    const end = quietStart(Logger as never);
    expect(linesOf(logAll)).toEqual(['[Cats] warn', '[Cats] error']);
    expect(linesOf(() => logger.log('early'))).toEqual([]);
    end();
    expect(loggerBefore()).toBe(before);
    expect(Object.hasOwn(Logger, 'overrideLogger')).toBe(true);
    expect(linesOf(logAll)).toEqual(['[Cats] log', '[Cats] debug', '[Cats] warn', '[Cats] error']);
    expect(linesOf(() => logger.log('late'))).toEqual(['[Cats] late']);
  });

  it('quiets a logger that the app gives to Nest, and gives it back', () => {
    const before = loggerBefore();
    const end = quietStart(Logger as never);
    const own = new ConsoleLogger({ prefix: 'own' });
    Logger.overrideLogger(own);
    expect(linesOf(logAll)).toEqual(['[Cats] warn', '[Cats] error']);
    Logger.overrideLogger(['error']);
    expect(linesOf(logAll)).toEqual(['[Cats] error']);
    end();
    expect(loggerBefore()).toBe(own);
    expect(linesOf(logAll)).toEqual(['[Cats] error']);
    Reflect.set(Logger, 'staticInstanceRef', before);
    Reflect.set(Logger, 'logLevels', undefined);
  });

  it('leaves an app without logs without them', () => {
    const before = loggerBefore();
    const end = quietStart(Logger as never);
    Logger.overrideLogger(false);
    expect(linesOf(logAll)).toEqual([]);
    end();
    expect(linesOf(logAll)).toEqual([]);
    Reflect.set(Logger, 'staticInstanceRef', before);
  });
});
