import { concat, isObservable, lastValueFrom, of, Subject, throwError, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import {
  countedHandler,
  type RpcHandler,
} from '../../../../src/worker/microservices/rpc-handlers.js';

function counted(handler: RpcHandler) {
  const count = { running: 0, ended: 0 };
  const wrapped = countedHandler(handler, () => {
    count.running += 1;
    return () => {
      count.running -= 1;
      count.ended += 1;
    };
  });
  return { count, wrapped };
}

describe('a handler that is counted', () => {
  it('has ended with its value, its rejection or what it throws', async () => {
    const value = counted(() => 1);
    expect([value.wrapped(), value.count]).toEqual([1, { running: 0, ended: 1 }]);

    const promise = counted(async () => 2);
    const answer = promise.wrapped();
    expect(promise.count.running).toBe(1);
    expect([await answer, promise.count]).toEqual([2, { running: 0, ended: 1 }]);

    const rejects = counted(async () => {
      throw new Error('refused');
    });
    await expect(rejects.wrapped()).rejects.toThrow('refused');
    expect(rejects.count).toEqual({ running: 0, ended: 1 });

    const throws = counted(() => {
      throw new Error('at once');
    });
    expect(() => throws.wrapped()).toThrow('at once');
    expect(throws.count).toEqual({ running: 0, ended: 1 });
  });

  it('runs until its stream has ended, or nobody wants more of it', async () => {
    const subject = new Subject<number>();
    const { count, wrapped } = counted(async () => concat(of(1, 2), subject));
    const stream = (await wrapped()) as Subject<number>;
    expect(isObservable(stream)).toBe(true);
    const values = lastValueFrom(stream.pipe(toArray()));
    expect(count.running).toBe(1);

    subject.next(3);
    expect(count.running).toBe(1);
    subject.complete();

    expect(await values).toEqual([1, 2, 3]);
    expect(count).toEqual({ running: 0, ended: 1 });

    const endless = counted(() => new Subject());
    (endless.wrapped() as Subject<unknown>).subscribe().unsubscribe();
    expect(endless.count).toEqual({ running: 0, ended: 1 });

    const fails = counted(() => throwError(() => new Error('in the stream')));
    await expect(lastValueFrom(fails.wrapped() as Subject<unknown>)).rejects.toThrow('in the');
    expect(fails.count).toEqual({ running: 0, ended: 1 });
  });

  it('leaves a stream of the app as it was, which others may have subscribed to', async () => {
    const subject = new Subject<number>();
    const { count, wrapped } = counted(() => subject);
    const stream = wrapped() as Subject<number>;

    subject.subscribe().unsubscribe();

    expect(count.running).toBe(1);
    expect(Object.hasOwn(subject, 'subscribe')).toBe(false);
    stream.subscribe();
    subject.complete();
    expect(count.running).toBe(0);
  });

  it('keeps what Nest knows of it', () => {
    const handler: RpcHandler & { isEventHandler?: boolean; next?: RpcHandler } = () => 1;
    handler.isEventHandler = true;
    const { wrapped } = counted(handler);
    const next: RpcHandler = () => 2;

    Object.assign(wrapped, { next });

    expect(wrapped).toHaveProperty('isEventHandler', true);
    expect(wrapped).toHaveProperty('next', next);
    expect(handler.next).toBe(next);
  });
});
