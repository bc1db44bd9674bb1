import { describe, expect, it } from 'vitest';
import { reasonToGiveUp } from '../../src/primary/policies/give-up.policy.js';

const fine = { degraded: false, ready: true, untried: true };
const restarting = { degraded: false, ready: false, untried: false };
const looping = { degraded: true, ready: false, untried: false };
/** In its first boot. */
const booting = { degraded: false, ready: false, untried: true };
/** In a crash loop a moment ago, and up again since. */
const recovering = { degraded: true, ready: true, untried: false };

describe('the cluster goes on', () => {
  it.each([
    ['while a worker serves', true, 100, [fine, looping]],
    ['while one of the slots is not in a crash loop', true, 100, [restarting, looping]],
    ['while a slot in a crash loop is up again', true, 100, [recovering, looping]],
    ['before each slot has had two tries', false, 3, [restarting, restarting]],
    ['after its only slot failed once', false, 1, [restarting]],
    ['after many failures where some worker was ready once', true, 100, [restarting, restarting]],
    ['at the start', false, 0, [booting, booting]],
    ['while the first boot of a slot may still succeed', false, 100, [looping, booting, looping]],
  ])('%s', (_, everReady, failures, slots) => {
    expect(reasonToGiveUp({ everReady, failures, slots })).toBeUndefined();
  });
});

describe('the cluster gives up', () => {
  it.each([
    [2, [restarting]],
    [4, [restarting, restarting]],
    [5, [restarting, looping]],
  ])('after %d failures where no worker ever became ready', (failures, slots) => {
    expect(reasonToGiveUp({ everReady: false, failures, slots })).toBe(
      `no worker became ready in ${failures} attempts`,
    );
  });

  it.each([[[looping]], [[looping, looping]]])(
    'where every slot is in a crash loop and none serves',
    (slots) => {
      expect(reasonToGiveUp({ everReady: true, failures: 10, slots })).toMatch(/crash loop/);
    },
  );

  it('where every slot is in a crash loop before two tries a slot', () => {
    const reason = reasonToGiveUp({ everReady: false, failures: 1, slots: [looping] });
    expect(reason).toMatch(/crash loop/);
  });
});
