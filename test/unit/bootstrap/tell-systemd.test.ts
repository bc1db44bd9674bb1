import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type ClusterEventMap, EventListeners } from '../../../src/contract/events/index.js';
import { tellSystemd } from '../../../src/bootstrap/tell-systemd.js';
import { LISTENING } from '../support/cluster-events.js';

const STARTED = { generation: 1, reason: 'SIGHUP' };
const ENDED = { generation: 1, outcome: 'completed', reason: null, durationMs: 10 } as const;
const STOPPING = { reason: 'SIGTERM', workers: 2, force: 'drain' } as const;

/** A cluster whose messages to systemd are kept. `send` may fail. */
function cluster({
  env = {},
  isWell = () => true,
}: { env?: NodeJS.ProcessEnv; isWell?: () => boolean } = {}) {
  const events = new EventListeners(() => {});
  const sent: string[][] = [];
  const warnings: string[] = [];
  const ready = { ready: 0, desired: 2 };
  let send = async (): Promise<void> => {};
  tellSystemd(
    events,
    { workers: () => ready, isWell, warn: (message) => void warnings.push(message) },
    env,
    (assignments) => {
      sent.push([...assignments]);
      return send();
    },
  );
  return { events, sent, warnings, ready, sendBy: (by: typeof send) => (send = by) };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const soon = () => vi.advanceTimersByTimeAsync(0);

describe('what systemd is told', () => {
  it('is READY with the first worker, RELOADING and READY around a reload, STOPPING', async () => {
    const { events, sent, ready } = cluster();
    const tell = async <N extends keyof ClusterEventMap>(name: N, event: ClusterEventMap[N]) => {
      events.call(name, event);
      await soon();
      return sent.splice(0);
    };
    expect(await tell('starting', { workers: 2, pid: 1, node: '20.0.0' })).toEqual([
      ['STATUS=0/2 workers ready; starting 2 workers (primary pid=1, Node 20.0.0)'],
    ]);
    ready.ready = 1;
    expect(await tell('listening', LISTENING)).toEqual([
      ['READY=1', expect.stringMatching(/^STATUS=1\/2 workers ready; listening on http/)],
    ]);
    ready.ready = 2;
    const worker = { slot: 1, generation: 0, pid: 2 };
    expect(await tell('worker-ready', { worker, bootMs: 5 })).toEqual([
      ['READY=1', expect.stringMatching(/^STATUS=2\/2 workers ready; listening on http/)],
    ]);
    expect(await tell('reload-started', STARTED)).toEqual([
      ['RELOADING=1', 'STATUS=2/2 workers ready; SIGHUP: reload gen=1 started'],
    ]);
    expect(await tell('reload-ended', ENDED)).toEqual([
      ['READY=1', 'STATUS=2/2 workers ready; reload gen=1 completed in 10 ms'],
    ]);
    expect(await tell('stopping', STOPPING)).toEqual([
      ['STOPPING=1', 'STATUS=2/2 workers ready; SIGTERM: draining 2 workers'],
    ]);
  });

  it('is not READY after a stop, and not before the first worker, whatever a reload does', async () => {
    const { events, sent } = cluster();
    events.call('reload-started', STARTED);
    events.call('reload-ended', ENDED);
    await soon();
    expect(sent).toEqual([]);

    events.call('listening', LISTENING);
    events.call('reload-started', STARTED);
    events.call('stopping', STOPPING);
    events.call('reload-ended', { ...ENDED, outcome: 'aborted', reason: 'stopping' });
    await soon();
    const states = sent.flat().filter((each) => !each.startsWith('STATUS'));
    expect(states.filter((each, index) => each !== states[index - 1])).toEqual([
      'READY=1',
      'STOPPING=1',
    ]);
    expect(sent.flat().at(-1)).toContain('draining');
  });

  it('is one line, whatever an error of the app says', async () => {
    const { events, sent } = cluster();
    events.call('listening', LISTENING);
    const reason = `first\nMAINPID=1\n${'x'.repeat(5_000)}`;
    events.call('reload-ended', { ...ENDED, outcome: 'aborted', reason });
    await soon();
    for (const assignment of sent.flat()) {
      expect(assignment).not.toContain('\n');
      expect(assignment.length).toBeLessThanOrEqual(1_000);
    }
    expect(sent.flat().at(-1)).toContain('first | MAINPID=1');
  });

  it('is one message at a time, with the latest state', async () => {
    const { events, sent, sendBy } = cluster();
    let taken!: () => void;
    sendBy(() => new Promise((resolve) => (taken = resolve)));
    events.call('listening', LISTENING);
    events.call('reload-started', STARTED);
    events.call('reload-ended', ENDED);
    await soon();
    expect(sent).toHaveLength(1);
    taken();
    await soon();
    expect(sent.slice(1)).toEqual([['READY=1', expect.stringContaining('completed')]]);
  });

  it('is told by the next message if one fails, with one warning', async () => {
    const { events, sent, warnings, sendBy } = cluster();
    sendBy(() => Promise.reject(new Error('spawn systemd-notify ENOENT')));
    events.call('listening', LISTENING);
    await soon();
    events.call('scaling', { from: 2, to: 3, reason: 'SIGTTIN' });
    await soon();
    expect(sent.map(([state]) => state)).toEqual(['READY=1', 'READY=1']);
    expect(warnings).toEqual([
      'systemd does not get the state of the cluster: spawn systemd-notify ENOENT',
    ]);
  });
});

describe('the watchdog of systemd', () => {
  const env = () => ({ WATCHDOG_USEC: '30000000', WATCHDOG_PID: String(process.pid) });

  it('is answered at half its time, and no child gets its variables', async () => {
    const given = { ...env(), NOTIFY_SOCKET: '/run/notify', HOME: '/' };
    const { sent } = cluster({ env: given });
    expect(given).toEqual({ HOME: '/' });
    await vi.advanceTimersByTimeAsync(14_999);
    expect(sent).toEqual([]);
    await vi.advanceTimersByTimeAsync(15_010);
    expect(sent).toEqual([['WATCHDOG=1'], ['WATCHDOG=1']]);
  });

  it('is not answered while the primary does not judge itself well', async () => {
    let isWell = false;
    const { sent, warnings } = cluster({ env: env(), isWell: () => isWell });
    await vi.advanceTimersByTimeAsync(15_010);
    expect(sent).toEqual([]);
    expect(warnings).toEqual([expect.stringContaining('watchdog')]);
    isWell = true;
    await vi.advanceTimersByTimeAsync(15_000);
    expect(sent).toEqual([['WATCHDOG=1']]);
  });

  it.each([
    { WATCHDOG_USEC: '30000000', WATCHDOG_PID: '1' },
    { WATCHDOG_USEC: '0' },
    // "infinity" of systemd: a timer of Node must not fire at once.
    { WATCHDOG_USEC: '18446744073709551615' },
    {},
  ])('is not answered with %o', async (given) => {
    const { sent } = cluster({ env: given });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(sent).toEqual([]);
  });
});
