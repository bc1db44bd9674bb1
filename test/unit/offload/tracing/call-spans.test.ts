import { NotFoundException } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { callOffloaded } from '../../../../src/offload/call-offloaded.js';
import { Dispatcher } from '../../../../src/offload/admission/dispatcher.js';
import { runBody } from '../../../../src/offload/task/run-body.js';
import { isTraced } from '../../../../src/offload/task/trace-context.js';
import type { WaitingClient } from '../../../../src/offload/admission/waiting-client.js';
import { machineNow } from '../../../../src/contract/ipc/machine-clock.js';
import { startTracing } from '../../../../src/offload/tracing/start-tracing.js';
import { FakeObserver, FakeRunner, TASK } from '../../support/fake-runner.js';
import { inSpan, openSdk } from '../../support/open-sdk.js';

const TRACED = { name: TASK.name, functionName: 'Cats.countAll' };
const ATTRIBUTES = { 'code.function.name': 'Cats.countAll', 'nestjs_cluster.task': TASK.name };
const nobody = { current: undefined } as WaitingClient;
const turn = () => new Promise((resolve) => setImmediate(resolve));
const unexpected = (message: string): never => {
  throw new Error(message);
};

async function start({ maxQueue = 1, task = TASK } = {}) {
  const { spans } = openSdk();
  const tracing = (await startTracing(unexpected))!;
  const runner = new FakeRunner(1);
  const dispatcher = new Dispatcher(runner, maxQueue, new FakeObserver(), () => {});
  const call = (arg?: unknown) =>
    callOffloaded(dispatcher, task, [arg], nobody, tracing.follow(TRACED));
  /** Within a request of its own. @returns its id, once the call is over. */
  const request = (arg?: unknown) => inSpan(() => call(arg).catch(() => {}));
  const offloaded = () => spans().filter(({ name }) => name !== 'request');
  return { runner, dispatcher, tracing, call, request, spans, offloaded };
}

describe('the spans of an offloaded call', () => {
  it('are its wait and its run, as its thread tells of it', async () => {
    const { runner, request, offloaded } = await start();
    const requests = [request()];
    const begunAt = machineNow() + 20;
    runner.runs[0]!.complete(5, { ran: { begunAt, endedAt: begunAt + 30, hasSpan: false } });
    const [parent] = await Promise.all(requests);
    const [queue, run] = offloaded();
    const common = { parent, attributes: ATTRIBUTES, isError: false };
    expect(queue).toMatchObject({ name: `queue ${TASK.name}`, ...common });
    expect(run).toMatchObject({ name: `run ${TASK.name}`, ...common, startMs: queue!.endMs });
    expect(Math.round(run!.endMs - run!.startMs)).toBe(30);
    expect(queue!.endMs - queue!.startMs).toBeGreaterThan(19.9);
    expect(Math.abs(queue!.startMs - Date.now())).toBeLessThan(5_000);
    expect(offloaded()).toHaveLength(2);
  });

  it('end where the call of one who waits is refused', async () => {
    const { request, dispatcher, offloaded } = await start();
    const requests = [request(), request(), request()];
    await turn();
    dispatcher.close();
    await Promise.all(requests);
    expect(offloaded().map(({ name, isError }) => [name, isError])).toEqual([
      [`queue ${TASK.name}`, true], // refused at once
      [`queue ${TASK.name}`, true], // had to leave the queue
      [`queue ${TASK.name}`, false], // began, and was ended
      [`run ${TASK.name}`, false], // as if its client had left
    ]);
    expect(offloaded().map(({ attributes }) => attributes['error.type'])).toEqual([
      'TaskRejectedException',
      'TaskRejectedException',
      undefined,
      'TaskAbortedException',
    ]);
  });

  it('name the type of an error and nothing of what it says; an answer below 500 is no fault', async () => {
    const { runner, request, offloaded } = await start();
    for (const thrown of [new RangeError('secret'), new NotFoundException('secret')]) {
      const requested = request('secret');
      runner.active[0]!.fail(thrown);
      await requested;
    }
    const runs = offloaded().filter(({ name }) => name.startsWith('run'));
    expect(runs.map(({ isError, attributes }) => [isError, attributes['error.type']])).toEqual([
      [true, 'RangeError'],
      [false, 'NotFoundException'],
    ]);
    expect(JSON.stringify(offloaded())).not.toContain('secret');
  });

  it('leave the run to a thread that has a span of it', async () => {
    const { runner, request, offloaded } = await start();
    const requested = request();
    const now = machineNow();
    runner.runs[0]!.complete(5, { ran: { begunAt: now, endedAt: now, hasSpan: true } });
    await requested;
    expect(offloaded().map(({ name }) => name)).toEqual([`queue ${TASK.name}`]);
  });

  it('are none where there is no span that they could belong to', async () => {
    const { runner, call, spans } = await start();
    const called = call();
    runner.runs[0]!.complete(5);
    expect(await called).toBe(5);
    expect(runner.runs[0]!.request.contexts).toBeUndefined();
    expect(spans()).toEqual([]);
  });
});

describe('the trace that a call takes along', () => {
  it('is that of its request, as headers of W3C Trace Context', async () => {
    const { runner, request } = await start();
    const requested = request();
    const { contexts } = runner.runs[0]!.request;
    runner.runs[0]!.complete();
    expect(contexts).toEqual({
      'nestjs-cluster.trace': {
        traceparent: expect.stringMatching(
          new RegExp(`^00-[0-9a-f]{32}-${await requested}-01$`),
        ) as string,
      },
    });
  });

  it('has the run as its child where it arrives, and what the body does as that of the run', async () => {
    const { spans, runner, request } = await start();
    const requested = request();
    const { contexts } = runner.runs[0]!.request;
    runner.runs[0]!.complete();
    const parent = await requested;
    const body = async () => inSpan(async () => {});
    const result = await runBody(TRACED, body, contexts);
    expect(result).toMatchObject({ ok: true, ran: { hasSpan: true } });
    const run = spans().findLast(({ name }) => name === `run ${TASK.name}`);
    expect(run).toMatchObject({ parent, attributes: ATTRIBUTES, isError: false });
    expect(spans().find(({ parent: above }) => above === run!.id)?.name).toBe('request');
    const failed = await runBody(TRACED, () => unexpected('no'), contexts);
    expect(failed).toMatchObject({ ok: false, ran: { hasSpan: true } });
    expect(spans().at(-1)).toMatchObject({ isError: true, attributes: { 'error.type': 'Error' } });
  });

  it('goes on with a job in another process', async () => {
    const { spans, tracing } = await start();
    let carrier: Record<string, string> | undefined;
    const parent = await inSpan(async () => (carrier = tracing.inject()));
    await tracing.withCarrier(carrier!, () => inSpan(async () => {}));
    expect(spans().at(-1)).toMatchObject({ parent });
    expect(tracing.inject()).toBeUndefined();
  });
});

describe('an SDK whose API is not to be found', () => {
  it('is no reason not to serve: one line says what to install', async () => {
    openSdk();
    const said: string[] = [];
    const missing = (name: string) => async () => {
      throw Object.assign(new Error(`Cannot find package '${name}' imported from …`), {
        code: 'ERR_MODULE_NOT_FOUND',
      });
    };
    const say = (message: string) => said.push(message);
    expect(await startTracing(say, missing('@opentelemetry/api'))).toBeUndefined();
    expect(said).toEqual([
      '@CpuBound() calls have no spans: an SDK of OpenTelemetry runs here, and @opentelemetry/api is not installed where nestjs-cluster finds it; run npm install @opentelemetry/api',
    ]);
    await expect(startTracing(say, missing('another'))).rejects.toThrow("'another'");
  });
});

describe('without an SDK', () => {
  it('nothing is traced', async () => {
    expect(await startTracing(unexpected)).toBeUndefined();
    expect(isTraced({ request: 1 })).toBe(false);
    expect(await runBody(TRACED, () => 5, undefined)).toEqual({
      ok: true,
      value: 5,
      buffers: [],
    });
  });

  it('a thread says when it ran to a process that has one', async () => {
    const contexts = { 'nestjs-cluster.trace': {} };
    const result = await runBody(TRACED, () => 5, contexts);
    expect(result).toMatchObject({ ok: true, value: 5, ran: { hasSpan: false } });
    expect(result.ran!.endedAt).toBeGreaterThanOrEqual(result.ran!.begunAt);
  });
});
