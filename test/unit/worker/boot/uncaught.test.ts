import { describe, expect, it } from 'vitest';
import type { ResolvedLogOptions } from '../../../../src/contract/options/resolve.js';
import { uncaughtText } from '../../../../src/worker/boot/uncaught.js';

const WORKER = { slot: 1, generation: 2, pid: 3 };

const log = (
  format: ResolvedLogOptions['format'],
  level: ResolvedLogOptions['level'] = 'info',
) => ({
  format,
  level,
});

describe('what a worker itself writes about an uncaught error', () => {
  const error = new Error('no stock', { cause: new Error('no database') });

  it('is the error in full in a log of text, whoever else reports it', () => {
    for (const isReported of [true, false]) {
      const text = uncaughtText(error, log('text'), WORKER, isReported);
      expect(text).toMatch(/^Error: no stock\n +at .*\[cause\]: Error: no database\n/s);
    }
  });

  it('is nothing in a log of JSON if the primary reports it', () => {
    expect(uncaughtText(error, log('json'), WORKER, true)).toBe('');
  });

  it('is one line of JSON if nothing else reports it', () => {
    const text = uncaughtText(error, log('json'), WORKER, false);
    expect(text).toMatch(/^[^\n]*\n$/);
    const line: unknown = JSON.parse(text);
    expect(line).toMatchObject({ level: 'warn', event: 'warning', worker: 1, gen: 2, pid: 3 });
    expect(line).toMatchObject({ error: { name: 'Error', message: 'no stock' } });
    expect((line as { error: { stack: string } }).error.stack).toContain('Error: no database');
  });

  it('is the error in full if the log is silent', () => {
    expect(uncaughtText(error, log('json', 'silent'), WORKER, true)).toMatch(/^Error: no stock\n/);
  });
});
