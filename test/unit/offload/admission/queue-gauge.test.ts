import { describe, expect, it } from 'vitest';
import { QueueGauge } from '../../../../src/offload/admission/queue-gauge.js';

describe('how long a queue has been full', () => {
  it('is 0 where it never was', () => {
    const gauge = new QueueGauge();
    gauge.note(false, 5);
    expect(gauge.fullForMs(false, 10)).toBe(0);
    expect(gauge.fullForMs(false, 1e9)).toBe(0);
  });

  it('is counted from when it became full', () => {
    const gauge = new QueueGauge();
    gauge.note(true, 100);
    gauge.note(true, 600);
    expect(gauge.fullForMs(true, 900)).toBe(800);
  });

  it('is counted on over a relief of a second', () => {
    const gauge = new QueueGauge();
    for (let at = 0; at <= 5_000; at += 1_000) {
      gauge.note(true, at);
      gauge.note(false, at + 1);
    }
    expect(gauge.fullForMs(false, 5_500)).toBe(5_500);
    expect(gauge.fullForMs(true, 6_000)).toBe(6_000);
  });

  it('begins anew after a longer one', () => {
    const gauge = new QueueGauge();
    gauge.note(true, 0);
    gauge.note(true, 900);
    gauge.note(false, 901);
    expect(gauge.fullForMs(false, 1_902)).toBe(0);
    gauge.note(true, 3_000);
    expect(gauge.fullForMs(true, 3_500)).toBe(500);
  });

  it('is 0 at the moment in which it becomes full, also at the very start', () => {
    expect(new QueueGauge().fullForMs(true, 0)).toBe(0);
    expect(new QueueGauge().fullForMs(true, 50)).toBe(0);
  });
});
