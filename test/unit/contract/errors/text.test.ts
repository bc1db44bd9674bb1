import { expect, it } from 'vitest';
import { clean, oneLine } from '../../../../src/contract/errors/index.js';

/** Line and paragraph separators, and what turns the order of characters around (Trojan Source). */
const TRICKS = ['2028', '2029', '200E', '200F', '061C', '202A', '202E', '2066', '2069'];

it.each(TRICKS)('leaves no U+%s in a text from outside', (code) => {
  const text = `before${String.fromCodePoint(parseInt(code, 16))}after`;
  expect(clean(text)).toBe('beforeafter');
  expect(oneLine(text)).toBe('beforeafter');
});

it('leaves letters of every script, and joiners, as they are', () => {
  const text = 'grüße שלום مرحبا 👩\u200D💻';
  expect(clean(text)).toBe(text);
});
