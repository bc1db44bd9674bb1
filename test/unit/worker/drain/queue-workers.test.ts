import { Queue, Worker } from 'bullmq';
import { describe, expect, it, onTestFinished } from 'vitest';
import { QueueWorkers } from '../../../../src/worker/drain/drain.js';

/** An app with these providers. It has only the parts of Nest's container that the code reads. */
function appWith(...instances: unknown[]) {
  const providers = new Map(instances.map((instance, i) => [i, { instance }]));
  return { container: { getModules: () => new Map([['AppModule', { providers }]]) } };
}

/** An instance of a class of BullMQ, without a connection to Redis. */
function made<T extends { pause(): Promise<unknown> }>(Class: new (...args: never[]) => T) {
  const instance = Object.create(Class.prototype as object) as T;
  let paused = 0;
  let finish!: () => void;
  const finished = new Promise<void>((resolve) => (finish = resolve));
  instance.pause = () => {
    paused += 1;
    return finished;
  };
  onTestFinished(() => finish());
  return { instance, finish, paused: () => paused };
}

describe('a queue', () => {
  it('gets a worker of the app no more jobs, and is busy until those in hand are done', async () => {
    const provider = made(Worker);
    const field = made(Worker);
    // As in the WorkerHost of @nestjs/bullmq, which throws where there is none.
    const host = {
      _worker: field.instance,
      get worker(): never {
        throw new Error('not yet');
      },
    };
    const queues = new QueueWorkers(appWith(provider.instance, host, null, 'text', undefined));
    expect(queues.busy).toBe(false);
    queues.pause();
    expect([provider.paused(), field.paused(), queues.busy]).toEqual([1, 1, true]);
    provider.finish();
    await new Promise((resolve) => setImmediate(resolve));
    expect(queues.busy).toBe(true);
    field.finish();
    await new Promise((resolve) => setImmediate(resolve));
    expect(queues.busy).toBe(false);
  });

  it('has its workers found in a list, too', () => {
    const [first, second] = [made(Worker), made(Worker)];
    const queues = new QueueWorkers(appWith({ all: [first.instance, second.instance, 'text'] }));
    queues.pause();
    expect([first.paused(), second.paused(), queues.busy]).toEqual([1, 1, true]);
  });

  it('is itself not paused: that would be for everybody', () => {
    const queue = made(Queue);
    new QueueWorkers(appWith(queue.instance, { queue: queue.instance })).pause();
    expect(queue.paused()).toBe(0);
  });

  it('whose worker cannot be paused holds nothing up', async () => {
    const worker = made(Worker);
    worker.instance.pause = () => Promise.reject(new Error('Connection is closed.'));
    const queues = new QueueWorkers(appWith(worker.instance));
    queues.pause();
    await new Promise((resolve) => setImmediate(resolve));
    expect(queues.busy).toBe(false);
  });

  it('is not looked for in an app that is not Nest’s', () => {
    const queues = new QueueWorkers({});
    queues.pause();
    expect(queues.busy).toBe(false);
  });
});
