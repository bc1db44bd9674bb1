import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { setCurrentLink } from '../support/current-link.js';
import {
  enterWorker,
  eventsOf,
  forgetHub,
  idle,
  startWorkers as start,
} from '../support/hub-workers.js';

afterEach(() => {
  forgetHub();
  vi.restoreAllMocks();
});

describe('an event of the cluster', () => {
  it.each([
    ['all', [1, 1, 1]],
    ['others', [0, 1, 1]],
    [2, [0, 0, 1]],
    [7, [0, 0, 0]],
  ] as const)('to %s is heard once by each of those, and by nobody else', async (to, heard) => {
    const workers = await start(3);
    const listeners = workers.map(({ emitter }) => {
      const listener = vi.fn();
      emitter.on('paid', listener);
      return listener;
    });
    const payload = { id: 5n, at: new Date(0) };
    const sent = await workers[0]!.events.emit('paid', payload, to);
    await idle();
    expect(listeners.map(({ mock }) => mock.calls.length)).toEqual(heard);
    expect(sent).toBe(heard.filter(Boolean).length);
    for (const { mock } of listeners) {
      for (const [value] of mock.calls) expect(value).toEqual(payload);
    }
  });

  it('to one goes round', async () => {
    const workers = await start(3);
    const heard: number[] = [];
    workers.forEach(({ emitter }, slot) => emitter.on('job', () => heard.push(slot)));
    for (let n = 0; n < 6; n += 1) await workers[0]!.events.emit('job', n, 'one');
    expect(heard.toSorted((a, b) => a - b)).toEqual([0, 0, 1, 1, 2, 2]);
  });

  it('comes in the order of its sender, and does not come again where it is emitted', async () => {
    const [sender, receiver] = await start(2);
    const heard: unknown[] = [];
    receiver!.emitter.on('n', (n) => heard.push(n));
    await Promise.all(
      Array.from({ length: 1_000 }, (_, n) => sender!.events.emit('n', n, 'others')),
    );
    await idle();
    expect(heard).toEqual(Array.from({ length: 1_000 }, (_, n) => n));
  });
});

describe('an event to a worker that is behind', () => {
  it('is missed where it reads nothing, which is counted, and not by others', async () => {
    const [sender, slow, other] = await start(3);
    slow!.state.unsentBytes = 2 ** 24;
    const [missed, heard] = [vi.fn(), vi.fn()];
    slow!.emitter.on('n', missed);
    other!.emitter.on('n', heard);
    expect(await sender!.events.emit('n', 1, 'others')).toBe(1);
    await idle();
    expect([missed.mock.calls.length, heard.mock.calls.length]).toEqual([0, 1]);
    expect(sender!.hub.outcomes.get('publish missed')).toBe(1);
  });
});

describe('an event in a process', () => {
  it('is heard once, however many modules provide ClusterEvents, and not after the app is closed', async () => {
    const [sender, receiver] = await start(2);
    enterWorker(receiver!.hub);
    const second = await eventsOf(receiver!.emitter);
    second.onApplicationBootstrap();
    const heard = vi.fn();
    receiver!.emitter.on('n', heard);
    await sender!.events.emit('n', 1);
    await idle();
    expect(heard).toHaveBeenCalledTimes(1);
    await second.beforeApplicationShutdown();
    await receiver!.events.beforeApplicationShutdown();
    await sender!.events.emit('n', 2);
    await idle();
    expect(heard).toHaveBeenCalledTimes(1);
  });

  it('of more than 16 MB is refused, with what to do', async () => {
    const [sender] = await start(1);
    await expect(sender!.events.emit('n', Buffer.alloc(2 ** 24))).rejects.toThrow(
      /the payload of the event 'n' is 167\d+ bytes; the maximum is 16777216/,
    );
  });
});

describe('what is no event', () => {
  it.each([
    ['', 'all', /name of an event: "" is not allowed; expected a string of 1 to 16384 characters/],
    ['n'.repeat(16_385), 'all', /expected a string of 1 to 16384 characters/],
    ['n', -1, /-1 is not allowed; expected 'all', 'others', 'one' or a slot number/],
    ['n', 256, /receivers of emit\(\): 256 is not allowed/],
    ['n', 'foo', /"foo" is not allowed/],
  ])('named %.9o to %o is refused', async (name, to, message) => {
    const [sender] = await start(1);
    const emitted = sender!.events.emit(name as string, 0, to as 'all');
    await expect(emitted).rejects.toMatchObject({
      code: 'CLUSTER_CONFIGURATION',
      message: expect.stringMatching(message),
    });
  });

  it.each([
    [{ to: 'all' }, /to: "all" is not allowed; expected 'one' or a slot number/],
    [{ to: 256 }, /to: 256 is not allowed/],
    [{ timeoutMs: 50 }, /timeoutMs is not allowed; known keys: to, deadlineMs/],
    [{ deadlineMs: NaN }, /deadlineMs/],
    [{ deadlineMs: 2 ** 31 }, /deadlineMs/],
  ])('is a request with the options %o', async (options, message) => {
    const [sender] = await start(1);
    const asked = sender!.events.request('n', 0, options as never);
    await expect(asked).rejects.toMatchObject({
      code: 'CLUSTER_CONFIGURATION',
      message: expect.stringMatching(message),
    });
  });

  it('is one to a slot beyond the workers that there are to be', async () => {
    const [sender] = await start(2);
    setCurrentLink({ workers: 3 });
    onTestFinished(() => setCurrentLink(undefined));
    expect(await sender!.events.emit('n', 0, 2)).toBe(0); // its worker has not come up yet
    await expect(sender!.events.emit('n', 0, 3)).rejects.toThrow(
      /cannot reach slot 3: the last slot is 2/,
    );
    await expect(sender!.events.request('n', 0, { to: 9 })).rejects.toThrow(/the last slot is 2/);
  });
});

describe('a request to another worker', () => {
  it('fails without a rejection that nobody handles, where its payload cannot be copied or the hub is slow', async () => {
    const [asker] = await start(1);
    const unhandled = vi.fn();
    process.on('unhandledRejection', unhandled);
    const request = (payload: unknown) =>
      asker!.events.request('n', payload, { to: 1, deadlineMs: 20 });
    await expect(request(() => {})).rejects.toThrow(/could not be cloned/);
    asker!.lost.add('publish');
    await expect(request(1)).rejects.toThrow(/did not answer within 20 ms/);
    await new Promise((resolve) => setTimeout(resolve, 50));
    process.off('unhandledRejection', unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  });

  it('is answered by what a listener returns there, and fails as that fails', async () => {
    const [asker, answers] = await start(2);
    answers!.emitter.on('double', (n: number) => 2 * n);
    answers!.emitter.on('fails', () => {
      throw new Error('no such order');
    });
    await expect(asker!.events.request('double', 21, { to: 1 })).resolves.toBe(42);
    await expect(asker!.events.request('fails', 0, { to: 1 })).rejects.toThrow(/no such order/);
    await expect(asker!.events.request('other', 0, { to: 1 })).rejects.toThrow(
      /no listener for this event/,
    );
    await expect(asker!.events.request('double', 1, { to: 9 })).rejects.toMatchObject({
      code: 'CLUSTER_REQUEST',
    });
  });

  it('fails at once where the app is closed, or the connection to the hub is lost', async () => {
    const [asker, answers] = await start(2);
    answers!.emitter.on('never', (): unknown => new Promise(() => {}));
    const ask = () => asker!.events.request('never', 0, { to: 1, deadlineMs: 60_000 });
    const lost = expect(ask()).rejects.toThrow(/the connection to the hub was lost/);
    await idle();
    asker!.hub.closed();
    await lost;
    asker!.hub.opened('a');
    const closed = expect(ask()).rejects.toThrow(/this app was closed/);
    await idle();
    asker!.events.onApplicationShutdown();
    await closed;
    await expect(ask()).rejects.toThrow(/this app was closed/);
  });
});
