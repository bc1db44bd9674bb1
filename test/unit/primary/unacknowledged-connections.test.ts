import cluster, { type Worker } from 'node:cluster';
import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { followConnections } from '../../../src/primary/fork-worker.js';

const know = (workers: unknown) => Reflect.set(cluster, 'workers', workers);

/** The workers that node:cluster knows, by their state. */
function others(...states: (string | undefined)[]): void {
  know(Object.fromEntries(states.map((state, id) => [id, { state }])));
}

const before = cluster.workers;
beforeEach(() => others('listening'));
afterEach(() => {
  know(before);
});

/** A worker whose process keeps what it is sent, and what Node's own listeners hear of it. */
function start() {
  const send = vi.fn((..._args: unknown[]) => true);
  const process = Object.assign(new EventEmitter(), { send });
  const heard: unknown[] = [];
  process.on('internalMessage', (message) => heard.push(message));
  const disconnected = vi.fn();
  process.on('disconnect', disconnected);
  const handOver = followConnections({ process } as unknown as Worker);
  const followed = process as unknown as { send(...args: unknown[]): boolean };
  return {
    send,
    heard,
    disconnected,
    handOver,
    followed,
    /** As node:cluster sends a connection. */
    connection: (seq: number) =>
      followed.send({ cmd: 'NODE_CLUSTER', act: 'newconn', seq }, {}, undefined, undefined),
    /** As a worker says that it has taken, or refused, a connection. */
    acknowledge: (ack: number, accepted = true) =>
      process.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack, accepted }),
    receive: (message: unknown) => process.emit('internalMessage', message),
  };
}

const refusalOf = (ack: number) => ({ cmd: 'NODE_CLUSTER', ack, accepted: false });

describe('connections that a worker was sent', () => {
  it('are given to others, as if it had refused them, once it has exited', () => {
    const { connection, handOver, heard } = start();
    for (const seq of [0, 1, 7]) connection(seq);
    expect(heard).toEqual([]);
    handOver();
    expect(heard).toEqual([refusalOf(0), refusalOf(1), refusalOf(7)]);
  });

  it('are its own once it has acknowledged them, by taking or refusing', () => {
    const { connection, acknowledge, handOver, heard } = start();
    for (const seq of [1, 2, 3]) connection(seq);
    acknowledge(2);
    acknowledge(3, false);
    heard.length = 0;
    handOver();
    expect(heard).toEqual([refusalOf(1)]);
  });

  it('are given away after node:cluster has struck it off: it would be given them again', () => {
    const { connection, handOver, heard, disconnected } = start();
    disconnected.mockImplementation(() => expect(heard).toEqual([]));
    connection(1);
    handOver();
    expect(disconnected).toHaveBeenCalledOnce();
    expect(heard).toHaveLength(1);
  });
});

describe('connections that nobody is left to take', () => {
  it.each([
    ['there is no other worker', () => others()],
    ['the others start', () => others('online', undefined)],
    ['the others have ended', () => others('dead', 'disconnected')],
    ['its process has no workers at all', () => know(undefined)],
  ])('are closed, as if they had been taken, where %s', (_, change) => {
    const { connection, handOver, heard } = start();
    change();
    connection(1);
    connection(2);
    handOver();
    expect(heard).toEqual([
      { cmd: 'NODE_CLUSTER', ack: 1, accepted: true },
      { cmd: 'NODE_CLUSTER', ack: 2, accepted: true },
    ]);
  });

  it('are given to the one that listens, among others that do not', () => {
    const { connection, handOver, heard } = start();
    others('online', 'listening', 'dead');
    connection(1);
    handOver();
    expect(heard).toEqual([refusalOf(1)]);
  });

  it('are judged once node:cluster has struck off the worker that ended', () => {
    const { connection, handOver, heard, disconnected } = start();
    disconnected.mockImplementation(() => others());
    connection(1);
    handOver();
    expect(heard).toMatchObject([{ accepted: true }]);
  });
});

describe('what a worker is sent', () => {
  it('is sent on as it was, with what Node says of it', () => {
    const { send, followed } = start();
    const args = [{ cmd: 'NODE_CLUSTER', act: 'newconn', seq: 1 }, { fd: 1 }, { keepOpen: true }];
    expect(followed.send(...args)).toBe(true);
    send.mockReturnValueOnce(false);
    expect(followed.send('full')).toBe(false);
    expect(send.mock.calls).toEqual([args, ['full']]);
    expect(send.mock.calls[0]![0]).toBe(args[0]);
  });

  it.each([
    ['another message of node:cluster', { cmd: 'NODE_CLUSTER', act: 'disconnect', seq: 4 }],
    ["one of the app's that looks like it", { cmd: 'APP', act: 'newconn', seq: 4 }],
    ['a message of ours', { ns: 'nestjs-cluster', v: 1, type: 'ping', seq: 4 }],
    ['a text', 'newconn'],
    ['nothing', undefined],
    ['null', null],
  ])('is no connection where it is %s', (_, message) => {
    const { followed, handOver, heard } = start();
    followed.send(message);
    handOver();
    expect(heard).toEqual([]);
  });
});

describe('what a worker sends', () => {
  it.each([
    [
      'a message of node:cluster without an acknowledgement',
      { cmd: 'NODE_CLUSTER', act: 'online' },
    ],
    ["one of Node's own that is not node:cluster's", { cmd: 'NODE_HANDLE_ACK', ack: 1 }],
    ['an acknowledgement of what it was not sent', { cmd: 'NODE_CLUSTER', ack: 99 }],
  ])('acknowledges nothing where it is %s', (_, message) => {
    const { connection, receive, handOver, heard } = start();
    connection(1);
    receive(message);
    heard.length = 0;
    handOver();
    expect(heard).toEqual([refusalOf(1)]);
  });
});
