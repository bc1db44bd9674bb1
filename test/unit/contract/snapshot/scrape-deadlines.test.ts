import { expect, it } from 'vitest';
import {
  COLLECTION_TIMEOUT_MS,
  READ_TIMEOUT_MS,
  SCRAPE_TIMEOUT_MS,
} from '../../../../src/contract/snapshot/types.js';

/** For messages between the processes, for writing metrics and for merging them. */
const SPARE_MS = 100;

it('a scrape takes at most the documented second, and each part has time within it', () => {
  expect(READ_TIMEOUT_MS + SPARE_MS).toBeLessThanOrEqual(COLLECTION_TIMEOUT_MS);
  const parts = READ_TIMEOUT_MS + COLLECTION_TIMEOUT_MS;
  expect(parts + SPARE_MS).toBeLessThanOrEqual(SCRAPE_TIMEOUT_MS);
  expect(SCRAPE_TIMEOUT_MS + SPARE_MS).toBeLessThanOrEqual(1_000);
});
