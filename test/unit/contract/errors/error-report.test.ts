import { describe, expect, it } from 'vitest';
import { clean, oneLine, reportError } from '../../../../src/contract/errors/error-report.js';

/** Line and paragraph separators, and what turns the order of characters around (Trojan Source). */
const TRICKS = ['2028', '2029', '200E', '200F', '061C', '202A', '202E', '2066', '2069'];

it.each(TRICKS)('leaves no U+%s in a text from outside', (code) => {
  expect(oneLine(`before${String.fromCodePoint(parseInt(code, 16))}after`)).toBe('beforeafter');
});

it('leaves letters of every script, and joiners, as they are', () => {
  const text = 'grüße שלום مرحبا 👩\u200D💻';
  expect(clean(text)).toBe(text);
});

const no = (): never => {
  throw new Error('no');
};

describe('the report of an error', () => {
  it('keeps name, message, stack and code', () => {
    const error = Object.assign(new TypeError('bad'), { code: 'EBAD' });
    const { stack } = error;
    expect(reportError(error)).toEqual({ name: 'TypeError', message: 'bad', stack, code: 'EBAD' });
    expect(reportError(Object.assign(new Error('x'), { code: 5 })).code).toBeUndefined();
  });

  it('reports other thrown values', () => {
    expect(reportError('a text')).toEqual({ name: 'Error', message: 'a text' });
    expect(reportError(Symbol('s')).message).toBe('Symbol(s)');
  });

  it.each([
    ['a huge message', new Error('x'.repeat(1_000_000))],
    ['a huge stack', Object.assign(new Error('x'), { stack: 'at x\n'.repeat(1_000_000) })],
    ['no stack', Object.assign(new Error('x'), { stack: undefined })],
    ['no prototype', Object.create(null)],
    ['a text that cannot be made', { toString: no }],
    ['a message that is an object', Object.assign(new Error('x'), { message: {} })],
    ['no name', Object.assign(new Error('x'), { name: undefined })],
    // Error.prepareStackTrace may return any value. Some libraries make it return an array.
    ['a stack that is an array', Object.assign(new Error('x'), { stack: [{}] })],
    ['a stack that throws', Object.defineProperty(new Error('x'), 'stack', { get: no })],
    ['a proxy for prototype', new Proxy(new Error('x'), { getPrototypeOf: no })],
  ])('has short texts only, whatever was thrown: %s', (_, thrown) => {
    const { name, message, stack = '', code = '' } = reportError(thrown);
    for (const text of [name, message, stack, code]) {
      expect(typeof text).toBe('string');
      expect(text.length).toBeLessThanOrEqual(65_536);
    }
  });
});
