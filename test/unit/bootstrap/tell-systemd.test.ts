import { beforeEach, describe, expect, it, vi } from 'vitest';
import { EventListeners } from '../../../src/contract/log/event-listeners.js';
import { tellSystemd } from '../../../src/bootstrap/tell-systemd.js';
import { LISTENING } from '../support/cluster-events.js';

const STARTED = { generation: 1, reason: 'SIGHUP' };
const ENDED = { generation: 1, outcome: 'completed', reason: null, durationMs: 10 } as const;
const STOPPING = { reason: 'SIGTERM', workers: 2, force: 'drain' } as const;

type Done = (error?: Error) => void;

/** The program of systemd: what it was given, and how it ends. */
const program = vi.hoisted(() => ({ sent: [] as string[], run: (done: Done) => done() }));

vi.mock('node:child_process', () => ({
  execFile(_file: string, [message]: string[], _options: object, done: Done) {
    program.sent.push(message!);
    program.run(done);
  },
}));

function cluster({ env = {}, isWell = () => true }: { env?: object; isWell?: () => boolean } = {}) {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  const events = new EventListeners(() => {});
  const warnings: string[] = [];
  tellSystemd(events, isWell, (message) => void warnings.push(message));
  return { events, warnings };
}

beforeEach(() => {
  vi.useFakeTimers();
  program.sent = [];
  program.run = (done) => done();
});

const soon = () => vi.advanceTimersByTimeAsync(0);

describe('the state that systemd gets', () => {
  it('is READY with the first worker, RELOADING during a reload, READY, STOPPING', async () => {
    const { events } = cluster();
    events.call('starting', { workers: 2, pid: 1, node: '20.0.0' });
    events.call('listening', LISTENING);
    events.call('reload-started', STARTED);
    events.call('reload-ended', ENDED);
    events.call('stopping', STOPPING);
    await soon();
    expect(program.sent).toEqual(['READY=1', 'RELOADING=1', 'READY=1', 'STOPPING=1']);
  });

  it('is not READY before the first worker or after a stop, even if a reload ends', async () => {
    const { events } = cluster();
    events.call('reload-started', STARTED);
    events.call('reload-ended', ENDED);
    await soon();
    expect(program.sent).toEqual([]);

    events.call('listening', LISTENING);
    events.call('stopping', STOPPING);
    events.call('reload-ended', { ...ENDED, outcome: 'aborted', reason: 'stopping' });
    await soon();
    expect(program.sent).toEqual(['READY=1', 'STOPPING=1']);
  });

  it('is one message at a time', async () => {
    const { events } = cluster();
    let taken!: () => void;
    program.run = (done) => (taken = done);
    events.call('listening', LISTENING);
    events.call('reload-started', STARTED);
    await soon();
    expect(program.sent).toEqual(['READY=1']);
    taken();
    await soon();
    expect(program.sent).toEqual(['READY=1', 'RELOADING=1']);
  });

  it('is sent again after a failure, with one warning', async () => {
    const { events, warnings } = cluster();
    program.run = (done) => done(new Error('spawn systemd-notify ENOENT'));
    events.call('listening', LISTENING);
    events.call('stopping', STOPPING);
    await soon();
    expect(program.sent).toEqual(['READY=1', 'STOPPING=1']);
    expect(warnings).toEqual([
      "cannot report the cluster's state to systemd: spawn systemd-notify ENOENT",
    ]);
  });
});

describe('the watchdog of systemd', () => {
  const env = { WATCHDOG_USEC: '30000000', WATCHDOG_PID: String(process.pid) };

  it('is answered at half its time, and no child gets its variables', async () => {
    cluster({ env: { ...env, NOTIFY_SOCKET: '/run/notify' } });
    for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) {
      expect(process.env).not.toHaveProperty(name);
    }
    await vi.advanceTimersByTimeAsync(14_999);
    expect(program.sent).toEqual([]);
    await vi.advanceTimersByTimeAsync(15_010);
    expect(program.sent).toEqual(['WATCHDOG=1', 'WATCHDOG=1']);
  });

  it('is not answered while the supervisor does not work', async () => {
    let isWell = false;
    const { warnings } = cluster({ env, isWell: () => isWell });
    await vi.advanceTimersByTimeAsync(15_010);
    expect(program.sent).toEqual([]);
    expect(warnings).toEqual([expect.stringContaining('watchdog')]);
    isWell = true;
    await vi.advanceTimersByTimeAsync(15_000);
    expect(program.sent).toEqual(['WATCHDOG=1']);
  });

  it.each([
    { WATCHDOG_USEC: '30000000', WATCHDOG_PID: '1' },
    { WATCHDOG_USEC: '0' },
    // "infinity" of systemd: a timer of Node must not fire at once.
    { WATCHDOG_USEC: '18446744073709551615' },
    {},
  ])('is not answered with %o', async (given) => {
    cluster({ env: given });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(program.sent).toEqual([]);
  });
});
