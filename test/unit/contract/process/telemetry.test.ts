import { metrics, type MeterProvider, trace, type TracerProvider } from '@opentelemetry/api';
import { afterEach, describe, expect, it } from 'vitest';
import { endTelemetry } from '../../../../src/contract/process/telemetry.js';

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

describe('endTelemetry()', () => {
  it('shuts down each provider that an SDK has registered', async () => {
    const ended = register();
    expect(await endTelemetry(1_000)).toBeUndefined();
    expect(ended).toEqual(['trace', 'metrics', 'logs']);
  });

  it('ends after its timeout if the collector does not answer', async () => {
    register(() => new Promise(() => {}));
    expect(await endTelemetry(5)).toBe(
      'its last spans, metrics and logs may be lost: the export took longer than 5 ms; check that the OpenTelemetry collector answers',
    );
  });

  it('reports an error, and still shuts the others down', async () => {
    const ended = register(async (name) => {
      if (name === 'trace') throw new Error('connect ECONNREFUSED');
    });
    expect(await endTelemetry(1_000)).toContain('may be lost: connect ECONNREFUSED;');
    expect(ended).toHaveLength(3);
  });

  it('does nothing without an SDK, or with one that has no shutdown()', async () => {
    expect(await endTelemetry(0)).toBeUndefined();
    trace.setGlobalTracerProvider({ getTracer: () => undefined as never });
    expect(await endTelemetry(0)).toBeUndefined();
  });
});
