import { resolveOptions } from '../../src/contract/options/index.js';
import type { Settings } from '../../src/decide/step.js';
import type { Scenario } from './scenario.js';

const DEFAULTS = resolveOptions({}, {});

/** The settings of a scenario. Options that the scenario does not have get their defaults. */
export function settingsOf({ options, inspected }: Scenario): Settings {
  const { readyTimeoutMs, hangTimeoutMs, observeMs } = options;
  const { lameDuckMs, drainTimeoutMs, killTimeoutMs } = options;
  return {
    options: {
      readyTimeoutMs,
      hangTimeoutMs,
      memory: options.memory ? { softLimitBytes: 500e6, hardLimitBytes: 900e6 } : DEFAULTS.memory,
      recycle: options.recycle
        ? { ...DEFAULTS.recycle, maxRequests: 1_000, maxAgeMs: 20_000 }
        : DEFAULTS.recycle,
      reload: { observeMs },
      shutdown: { ...DEFAULTS.shutdown, lameDuckMs, drainTimeoutMs, killTimeoutMs },
    },
    url: 'http://127.0.0.1:3000',
    mayBeDebugged: inspected,
    machineClockMs: 0,
  };
}
