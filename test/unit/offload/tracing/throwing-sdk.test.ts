import { expect, it, vi } from 'vitest';
import { OpenTelemetry } from '../../../../src/offload/tracing/open-telemetry.js';

const TASK = { name: 'Reports.add', functionName: 'Reports.add' };
const refuse = (): never => {
  throw new Error('the SDK is out of order');
};
const SPAN = { setAttribute: refuse, setStatus: refuse, end: refuse };
const CONTEXT = {};

/** Starts spans, which then throw; or throws before. */
function tracingWith(startsSpans: boolean) {
  const span = { ...SPAN, spanContext: () => ({ traceId: '1' }) };
  return new OpenTelemetry({
    ROOT_CONTEXT: CONTEXT,
    context: { active: () => CONTEXT, with: refuse },
    propagation: { inject: refuse, extract: refuse },
    trace: {
      getSpanContext: () => ({ traceId: '1' }),
      getTracer: () => ({
        startSpan: startsSpans ? () => span : refuse,
        startActiveSpan: startsSpans
          ? (_name: string, _options: unknown, within: (span: unknown) => unknown) => within(span)
          : refuse,
      }),
    },
  } as never);
}

it.each([true, false])(
  'costs its spans and no call if it throws (in spans: %s)',
  async (startsSpans) => {
    const tracing = tracingWith(startsSpans);
    const body = vi.fn(async () => 42);
    expect(await tracing.run(TASK, body)).toBe(42);
    await expect(tracing.run(TASK, async () => refuse())).rejects.toThrow('out of order');
    expect(tracing.withCarrier({}, body)).toBeInstanceOf(Promise);
    expect(body).toHaveBeenCalledTimes(2);
    expect(tracing.inject()).toBeUndefined();
    expect(tracing.arrived(TASK, {}, 0)).toBeUndefined();
    tracing.follow(TASK)?.completed();
    tracing.follow(TASK)?.failed(new Error('of the method'));
  },
);
