import { MAX_TEXT_LENGTH } from './limits.js';
import type { ToHub } from './protocol.js';

const TEXTS = ['name', 'key', 'cache', 'channel', 'prefix', 'throttler'] as const;

/** @throws Error if a name or a key is not a string, or is too long. */
export function checkTexts(message: ToHub): void {
  for (const field of TEXTS) {
    const text: unknown = (message as { [Field in (typeof TEXTS)[number]]?: unknown })[field];
    if (text === undefined || (typeof text === 'string' && text.length <= MAX_TEXT_LENGTH))
      continue;
    throw new Error('a name or a key is a string of at most 16,384 characters');
  }
}
