import { describeRequests } from '../../../../src/worker/quarantine/describe-request.js';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CoarseClock } from '../../../../src/worker/http/coarse-clock.js';
import { FakeServer } from '../../support/fake-traffic.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('a coarse clock', () => {
  it('is right when it is first read, and at most a tenth of a second behind from then on', () => {
    vi.advanceTimersByTime(1_234);
    const clock = new CoarseClock();
    const begun = performance.now();
    expect(clock.now()).toBe(begun);
    for (let ms = 30; ms <= 900; ms += 30) {
      vi.advanceTimersByTime(30);
      const behindMs = begun + ms - clock.now();
      expect(behindMs).toBeGreaterThanOrEqual(0);
      expect(behindMs).toBeLessThan(100);
    }
  });

  it('has no timer while nobody reads it, and is right again after that', () => {
    const clock = new CoarseClock();
    expect(vi.getTimerCount()).toBe(0);
    clock.now();
    vi.advanceTimersByTime(250);
    expect(vi.getTimerCount()).toBe(0);
    vi.advanceTimersByTime(5_000);
    expect(clock.now()).toBe(performance.now());
  });
});

describe('a request that nobody measures', () => {
  let server: FakeServer;
  beforeEach(() => (server = new FakeServer()));
  afterEach(() => server.stop());

  it('costs no look at the clock, and is described by about when it began', () => {
    const client = server.connect();
    client.send().finish();
    const clock = vi.spyOn(performance, 'now');
    client.use(10);
    expect(clock).not.toHaveBeenCalled();
    clock.mockRestore();
    vi.advanceTimersByTime(10_000);
    client.send();
    vi.advanceTimersByTime(2_000);
    const [described] = describeRequests(server.tracker.inFlight);
    expect(described).toMatchObject({ method: 'GET', path: '/cats', forMs: 2_000 });
  });

  it('is timed exactly where somebody measures', () => {
    server.tracker.reports.observer = { finished() {}, aborted() {}, blocked() {} };
    const client = server.connect();
    client.use(1);
    vi.advanceTimersByTime(33);
    client.send();
    vi.advanceTimersByTime(7);
    expect(describeRequests(server.tracker.inFlight)[0]).toMatchObject({ forMs: 7 });
  });
});
