import { describe, expect, it } from 'vitest';
import { reasonToGiveUp } from '../../../../../src/supervisor/decide/policies/give-up.policy.js';

const failed = { untried: false };
/** In its first boot. */
const booting = { untried: true };

describe('the cluster goes on', () => {
  it.each([
    ['after any number of failures where a worker has been ready', true, 1_000, [failed, failed]],
    ['before each slot has had two tries', false, 3, [failed, failed]],
    ['after its only slot failed once', false, 1, [failed]],
    ['at the start', false, 0, [booting, booting]],
    ['while the first boot of a slot may still succeed', false, 100, [failed, booting, failed]],
  ])('%s', (_, everReady, failures, slots) => {
    expect(reasonToGiveUp({ everReady, everServed: everReady, failures, slots })).toBeUndefined();
  });
});

describe('the cluster gives up', () => {
  it.each([
    [2, [failed]],
    [4, [failed, failed]],
    [5, [failed, failed]],
  ])('after %d failures where no worker ever became ready', (failures, slots) => {
    expect(reasonToGiveUp({ everReady: false, everServed: false, failures, slots })).toBe(
      `no worker became ready in ${failures} attempts`,
    );
  });
});
