import { Logger } from '@nestjs/common';
import { withFilter } from 'graphql-subscriptions';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { ClusterPubSub } from '../../../src/events/index.js';
import { HubClient } from '../../../src/client/hub-client.js';
import { HubCore } from '../../../src/thread/hub-core.js';
import { connect, enterWorker, forgetHub, idle } from '../support/hub-workers.js';

afterEach(() => {
  forgetHub();
  vi.restoreAllMocks();
});

let connections: ReturnType<typeof connect>[];

/** Workers on one hub. */
async function start(count: number) {
  const core = new HubCore();
  const workers: ClusterPubSub[] = [];
  connections = [];
  for (let slot = 0; slot < count; slot += 1) {
    const connection = connect(core, slot);
    connections.push(connection);
    enterWorker(connection.hub);
    const pubSub = new ClusterPubSub();
    await pubSub.publish('warm', slot); // it finds its hub when it is used
    workers.push(pubSub);
  }
  return workers as [ClusterPubSub, ...ClusterPubSub[]];
}

/** The payloads that a worker receives on these triggers, in order of arrival. */
async function hearing(pubSub: ClusterPubSub, ...triggers: string[]) {
  const heard: unknown[] = [];
  for (const trigger of triggers) {
    await pubSub.subscribe(trigger, (payload: unknown) => void heard.push(payload));
  }
  return heard;
}

it('a subscription is not held up where there can be no hub', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const hub = new HubClient(() => () => false);
  enterWorker(hub);
  const subscribing = new ClusterPubSub().subscribe('a', () => {});
  hub.unavailable('read-only file system');
  await vi.advanceTimersByTimeAsync(0);
  expect(await Promise.race([subscribing, Promise.resolve('late')])).toBe(1);
});

describe('what is published', () => {
  it('is heard by the subscribers of all workers in one order, and by no others', async () => {
    const [one, two, three] = await start(3);
    const all = await Promise.all([one, two!, three!].map((each) => hearing(each, 'a', 'b')));
    const other = await hearing(one, 'other');
    void one.publish('a', 1);
    void two!.publish('b', { at: new Date(0) });
    await three!.publish('a', 3);
    await idle();
    for (const heard of all) expect(heard).toEqual([1, { at: new Date(0) }, 3]);
    expect(other).toEqual([]);
  });

  it('is heard no more after the subscription has ended', async () => {
    const [one, two] = await start(2);
    const heard: unknown[] = [];
    const id = await one.subscribe('a', (payload: unknown) => void heard.push(payload));
    await two!.publish('a', 1);
    await idle();
    one.unsubscribe(id);
    await two!.publish('a', 2);
    await idle();
    expect(heard).toEqual([1]);
  });

  it('reaches the other subscribers if one throws or rejects, and a message that cannot be read is logged', async () => {
    const [one] = await start(1);
    const said = vi.spyOn(Logger.prototype, 'error').mockImplementation(() => {});
    const unhandled = vi.fn();
    process.on('unhandledRejection', unhandled);
    onTestFinished(() => void process.off('unhandledRejection', unhandled));
    await one.subscribe('a', async () => Promise.reject(new Error('no socket')));
    await one.subscribe('a', () => {
      throw Object.create(null);
    });
    const heard = await hearing(one, 'a');
    await one.publish('a', 1);
    await idle();
    await idle();
    expect([heard, unhandled.mock.calls]).toEqual([[1], []]);
    expect(said).toHaveBeenCalledWith('a subscriber to a failed: no socket');
    expect(said).toHaveBeenCalledTimes(2);
    const { hub, sent } = connections[0]!;
    const { name: to } = sent.find((each) => each.op === 'join')!;
    const push = { t: 'said', from: 'other', to } as const;
    expect(() => hub.frame(push, Buffer.from('?'))).not.toThrow();
    expect(said).toHaveBeenCalledTimes(3);
  });

  it('is refused in words where it cannot be copied', async () => {
    const [one] = await start(1);
    await expect(one.publish('a', () => {})).rejects.toThrow(
      /the payload published on 'a' cannot be copied: .*; send plain data/,
    );
    await expect(one.publish('a', Buffer.alloc(17 * 1024 * 1024))).rejects.toThrow(
      /is \d+ bytes; the maximum is 16777216/,
    );
  });

  it('comes in its order where two of one process publish, too', async () => {
    const [one, two] = await start(2);
    enterWorker(connections[0]!.hub);
    const same = new ClusterPubSub();
    await same.publish('warm', 0);
    const heard = await hearing(same, 'a');
    await Promise.all([one.publish('a', 1), two!.publish('a', 2), same.publish('a', 3)]);
    await idle();
    expect(heard).toEqual([1, 2, 3]);
  });
});

describe('an iterator', () => {
  it('reads what other workers publish, through withFilter(), until it is returned', async () => {
    const [one, two] = await start(2);
    const isEven = withFilter(
      () => one.asyncIterableIterator<number>(['a', 'b']),
      (payload) => payload % 2 === 0,
    );
    const iterator = (await isEven(undefined, {}, {}, undefined!)) as AsyncIterator<number>;
    const first = iterator.next();
    await idle();
    for (const number of [1, 2, 3]) await two!.publish('a', number);
    await two!.publish('b', 4);
    expect(await first).toEqual({ value: 2, done: false });
    expect(await iterator.next()).toEqual({ value: 4, done: false });
    await iterator.return!();
    expect(await iterator.next()).toMatchObject({ done: true });
  });

  it('ends with the app, also where it is read then', async () => {
    const [one] = await start(1);
    const iterator = one.asyncIterableIterator('a');
    const read = iterator.next();
    await idle();
    one.beforeApplicationShutdown();
    expect(await read).toEqual({ value: undefined, done: true });
    expect(await one.asyncIterableIterator('a').next()).toMatchObject({ done: true });
    await one.publish('a', 1);
  });
});
