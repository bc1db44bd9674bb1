import { describe, expect, it } from 'vitest';
import {
  COLLECTION_TIMEOUT_MS,
  READ_TIMEOUT_MS,
  SCRAPE_TIMEOUT_MS,
} from '../../../../src/contract/snapshot/index.js';

/** The longest that a scrape may take, in milliseconds, as documented. */
const SCRAPE_MS = 1_000;

/** For messages between the processes, for writing metrics and for merging them. */
const SPARE_MS = 100;

describe('the deadlines of a scrape', () => {
  it.each([
    ['the metrics of one worker', READ_TIMEOUT_MS, COLLECTION_TIMEOUT_MS],
    [
      'those of a worker and of all others',
      READ_TIMEOUT_MS + COLLECTION_TIMEOUT_MS,
      SCRAPE_TIMEOUT_MS,
    ],
    ['the answer of the primary', SCRAPE_TIMEOUT_MS, SCRAPE_MS],
  ])('leave time after %s: %d of %d ms', (_, part, whole) => {
    expect(part + SPARE_MS).toBeLessThanOrEqual(whole);
  });
});
