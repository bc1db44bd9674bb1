import { beforeEach, describe, expect, it, vi } from 'vitest';
import { machineNow } from '../../../../src/contract/process/clock.js';
import type { WorkerMessage } from '../../../../src/contract/messages.js';
import type { Leading } from '../../../../src/contract/snapshot/types.js';
import { WorkerLeaderRole } from '../../../../src/worker/link/worker-leader-role.js';

const SECOND = 1_800_000_000_000;

beforeEach(() => void vi.useFakeTimers({ now: SECOND + 200 }));

function start() {
  const said: WorkerMessage[] = [];
  const told: Leading[] = [];
  const role = new WorkerLeaderRole((message) => void said.push(message));
  role.follow((leading) => void told.push(leading));
  const lead = (ms: number, sinceMs?: number) =>
    role.receive({
      type: 'lead',
      seq: 1,
      until: machineNow() + ms,
      since: sinceMs === undefined ? undefined : machineNow() + sinceMs,
      done: [],
    });
  return { said, told, role, lead };
}

describe('the lease of a worker', () => {
  it('is asked for once, and answered', () => {
    const { said, role, lead } = start();
    expect(role.leads).toBe(false);
    lead(900);
    expect(role.leads).toBe(true);
    expect(said).toEqual([{ type: 'lead-request' }, { type: 'leads', seq: 1 }]);
  });

  it('ends by itself, also where it was over when it was read', () => {
    const { told, role, lead } = start();
    lead(900);
    vi.advanceTimersByTime(900);
    expect([role.leads, role.owns(Date.now())]).toEqual([false, false]);
    lead(-1);
    expect([role.leads, told.length]).toEqual([false, 1]);
  });

  it('has what was due since the last leader, or since its own that had run out', () => {
    const { told, role, lead } = start();
    lead(900, -300);
    expect([role.owns(SECOND - 90), role.owns(SECOND - 89)]).toEqual([false, true]);
    lead(900);
    vi.advanceTimersByTime(1_500);
    lead(900, -5_000);
    expect([role.owns(SECOND + 1_110), role.owns(SECOND + 1_111)]).toEqual([false, true]);
    expect(told.map(({ isFirst }) => isFirst)).toEqual([false, false, false]);
  });

  it('tells the first leader of the cluster so, once', () => {
    const { told, lead } = start();
    lead(900);
    lead(900);
    vi.advanceTimersByTime(1_500);
    lead(900);
    expect(told.map(({ isFirst }) => isFirst)).toEqual([true, false, false]);
  });

  it('has what is due after the clock was set back', () => {
    const { role, lead } = start();
    lead(900, -300);
    vi.advanceTimersByTime(100);
    vi.setSystemTime(SECOND - 3_600_000);
    expect([role.owns(SECOND - 3_600_000), role.owns(SECOND - 3_601_000)]).toEqual([true, false]);
  });

  it('is given up for the seconds to come, and not for the one that is under way', () => {
    const { said, role, lead } = start();
    lead(900);
    role.resign();
    expect(said.at(-1)).toEqual({ type: 'resigned', at: machineNow() + 300 });
    expect([role.leads, role.owns(SECOND), role.owns(SECOND + 1_000)]).toEqual([
      false,
      true,
      false,
    ]);
    lead(900);
    expect(role.leads).toBe(false);
  });
});
