import { metrics, type MeterProvider, trace, type TracerProvider } from '@opentelemetry/api';
import { afterEach, describe, expect, it } from 'vitest';
import { endTelemetry, environmentOfThread } from '../../../../src/contract/process/telemetry.js';

const LOGS = Symbol.for('io.opentelemetry.js.api.logs');

afterEach(() => {
  trace.disable();
  metrics.disable();
  Reflect.deleteProperty(globalThis, LOGS);
});

/** Puts providers where an SDK puts them. @returns which were shut down. */
function register(shutdown: (name: string) => Promise<void> = async () => {}): string[] {
  const ended: string[] = [];
  const provider = (name: string): object => ({
    shutdown: () => {
      ended.push(name);
      return shutdown(name);
    },
  });
  trace.setGlobalTracerProvider(provider('trace') as TracerProvider);
  metrics.setGlobalMeterProvider(provider('metrics') as MeterProvider);
  const logs = provider('logs');
  Reflect.set(globalThis, LOGS, (version: number) => (version === 1 ? logs : undefined));
  return ended;
}

describe('the end of telemetry', () => {
  it('is the end of whatever an SDK has registered', async () => {
    const ended = register();
    expect(await endTelemetry(1_000)).toBeUndefined();
    expect(ended).toEqual(['trace', 'metrics', 'logs']);
  });

  it('comes when its time is over, whatever the collector does', async () => {
    register(() => new Promise(() => {}));
    expect(await endTelemetry(5)).toBe(
      'its last spans, metrics and logs may be lost: not exported within 5 ms; look whether the collector of OpenTelemetry answers',
    );
  });

  it('says what went wrong, and ends the others all the same', async () => {
    const ended = register(async (name) => {
      if (name === 'trace') throw new Error('connect ECONNREFUSED');
    });
    expect(await endTelemetry(1_000)).toContain('may be lost: connect ECONNREFUSED;');
    expect(ended).toHaveLength(3);
  });

  it('is nothing where there is no SDK, or one that has no end', async () => {
    expect(await endTelemetry(0)).toBeUndefined();
    trace.setGlobalTracerProvider({ getTracer: () => undefined as never });
    expect(await endTelemetry(0)).toBeUndefined();
  });
});

describe('the environment of a thread', () => {
  it('keeps an SDK that is preloaded from starting there', () => {
    register();
    expect(environmentOfThread({ A: '1' })).toEqual({ A: '1', OTEL_SDK_DISABLED: 'true' });
  });

  it('is what the user has decided', () => {
    register();
    expect(environmentOfThread({ OTEL_SDK_DISABLED: 'false' })).toBeUndefined();
  });

  it('is that of the process where no SDK runs', () => {
    expect(environmentOfThread({ A: '1' })).toBeUndefined();
  });
});
