import { BullMQOtel } from 'bullmq-otel';
import { describe, expect, it } from 'vitest';
import { PendingCalls } from '../../../../src/integrations/bullmq/redis/pending-calls.js';
import { queueTelemetry } from '../../../../src/integrations/bullmq/queue-telemetry.js';
import {
  captureContexts,
  type CarriedContexts,
} from '../../../../src/offload/task/carry-context.js';
import { arrive } from '../../../../src/offload/task/trace-context.js';
import { machineNow } from '../../../../src/contract/ipc/machine-clock.js';
import { startTracing } from '../../../../src/offload/tracing/start-tracing.js';
import { TASK } from '../../support/fake-runner.js';
import { inSpan, openSdk } from '../../support/open-sdk.js';

const unexpected = (message: string): never => {
  throw new Error(message);
};

async function start() {
  const { spans } = openSdk();
  const tracing = (await startTracing(unexpected))!;
  return { tracing, calls: () => spans().filter(({ name }) => name !== 'request') };
}

/** Makes a call within a request. @returns the request's id, and what travels with the job. */
async function made(): Promise<{ parent: string; contexts: CarriedContexts }> {
  let contexts = '';
  const parent = await inSpan(async () => (contexts = JSON.stringify(captureContexts())));
  return { parent, contexts: JSON.parse(contexts) as CarriedContexts };
}

/** Runs what has arrived, in no time. */
function run({ trace }: ReturnType<typeof arrive>): void {
  const begunAt = machineNow();
  trace!.began();
  trace!.ran({ begunAt, endedAt: begunAt + 5, hasSpan: false });
  trace!.completed();
}

describe('the trace of a queued call', () => {
  it('goes on in the consumer: its wait since it was made, and its run', async () => {
    const { calls } = await start();
    const { parent, contexts } = await made();
    const madeAt = Date.now() - 500;
    const arrived = arrive(TASK, contexts, madeAt);
    expect(arrived.contexts).toEqual(contexts);
    run(arrived);
    const [queue, ran] = calls();
    expect(queue).toMatchObject({ name: `queue ${TASK.name}`, parent, startMs: madeAt });
    expect(queue!.endMs).toBeGreaterThanOrEqual(madeAt + 499);
    expect(ran).toMatchObject({ name: `run ${TASK.name}`, parent, startMs: queue!.endMs });
    expect(calls()).toHaveLength(2);
  });

  it('does not begin in the future, however the clocks of two machines differ', async () => {
    const { calls } = await start();
    run(arrive(TASK, (await made()).contexts, Date.now() + 60_000));
    expect(calls()[0]!.startMs).toBeLessThan(Date.now() + 1_000);
  });

  it('has the span between, of whoever handed the job over, as its parent', async () => {
    const { tracing, calls } = await start();
    const { contexts } = await made();
    const carrier = contexts['nestjs-cluster.trace'] as Record<string, string>;
    let onward: CarriedContexts | undefined;
    let within: string | undefined;
    const parent = await tracing.withCarrier(carrier, () =>
      inSpan(async () => {
        within = tracing.inject()!['traceparent'];
        const arrived = arrive(TASK, contexts, Date.now() - 500);
        onward = arrived.contexts;
        run(arrived);
      }),
    );
    expect(calls().map((span) => span.parent)).toEqual([parent, parent]);
    expect(onward).toMatchObject({ 'nestjs-cluster.trace': { traceparent: within } });
  });

  it('is not that of a span which happens to be active in the consumer', async () => {
    const { calls } = await start();
    const { parent, contexts } = await made();
    await inSpan(async () => run(arrive(TASK, contexts, Date.now())));
    expect(calls().map((span) => span.parent)).toEqual([parent, parent]);
  });

  it.each([
    ['nothing', undefined, undefined],
    ['null', null, undefined],
    ['text', 'x', undefined],
    ['another context alone', { request: 7 }, { request: 7 }],
    ['a carrier that is none', { 'nestjs-cluster.trace': 7, request: 7 }, { request: 7 }],
    ['headers that are none', { 'nestjs-cluster.trace': { traceparent: {} } }, {}],
  ])('is none where %s has arrived', async (_what, contexts, onward) => {
    await start();
    expect(arrive(TASK, contexts, 0)).toEqual({ contexts: onward, trace: undefined });
  });

  it.each([
    [true, []],
    [undefined, [`queue ${TASK.name}`]],
  ])('is told once: by its caller, unless the consumer does (%s)', async (traced, names) => {
    const { tracing, calls } = await start();
    const pending = new PendingCalls('me', unexpected);
    await inSpan(async () => {
      const trace = tracing.follow(TASK)!;
      const { id, result } = pending.begin(TASK, 1_000, trace);
      pending.settle(JSON.stringify({ v: 1, id, ok: true, value: 1, traced }));
      await result;
      trace.completed();
    });
    expect(calls().map(({ name }) => name)).toEqual(names);
  });
});

describe('what BullMQ tells of its own steps', () => {
  it('goes to the SDK that runs, by bullmq-otel, unless the app says otherwise', async () => {
    expect(await queueTelemetry(undefined)).toBeUndefined();
    openSdk();
    expect(await queueTelemetry(undefined)).toBeInstanceOf(BullMQOtel);
    expect(await queueTelemetry(false)).toBeUndefined();
    const own = new BullMQOtel();
    expect(await queueTelemetry(own)).toBe(own);
  });
});
