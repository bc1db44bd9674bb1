import { Queue, Worker } from 'bullmq';
import { describe, expect, it, onTestFinished } from 'vitest';
import { pauseQueues } from '../../../../src/worker/drain/drain.js';

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

/** Whether a promise is resolved by now. */
async function isDone(promise: Promise<unknown>): Promise<boolean> {
  let done = false;
  void promise.then(() => (done = true));
  await new Promise((resolve) => setImmediate(resolve));
  return done;
}

describe('a queue', () => {
  it('gets a worker of the app no more jobs, and is waited for until those in hand are done', async () => {
    const [provider, field, listed] = [made(Worker), made(Worker), made(Worker)];
    // As in the WorkerHost of @nestjs/bullmq, which throws where there is none.
    const host = {
      _worker: field.instance,
      get worker(): never {
        throw new Error('not yet');
      },
    };
    const paused = pauseQueues(
      appWith(provider.instance, host, { all: [listed.instance, 'text'] }, null, undefined),
    );
    expect([provider, field, listed].map(({ paused }) => paused())).toEqual([1, 1, 1]);
    provider.finish();
    listed.finish();
    expect(await isDone(paused)).toBe(false);
    field.finish();
    expect(await isDone(paused)).toBe(true);
  });

  it('is itself not paused: that would be for everybody', async () => {
    const queue = made(Queue);
    await pauseQueues(appWith(queue.instance, { queue: queue.instance }));
    expect(queue.paused()).toBe(0);
  });

  it('whose worker cannot be paused holds nothing up', async () => {
    const worker = made(Worker);
    worker.instance.pause = () => Promise.reject(new Error('Connection is closed.'));
    await expect(pauseQueues(appWith(worker.instance))).resolves.toBeUndefined();
  });

  it('is not looked for in an app that is not Nest’s', async () => {
    await expect(pauseQueues({})).resolves.toBeUndefined();
  });
});
