import type { Type } from '@nestjs/common';
import type { ModuleRef } from '@nestjs/core';
import type { HealthIndicatorFunction, HealthIndicatorResult } from '@nestjs/terminus';
import {
  ClusterConfigurationError,
  inspected,
  type OnceAMinute,
} from '../../contract/errors/errors.js';
import type { ResolvedModuleOptions } from '../../contract/options/module.js';
import { inTime } from '../../contract/process/in-time.js';

type Entry = Exclude<ResolvedModuleOptions['health'], false>['indicators'][number];

/** An indicator that takes longer is down. */
const TIMEOUT_MS = 1_000;

/**
 * Converts `health.indicators` to functions for terminus. An indicator is down if it times out or
 * throws. Only the log shows the error, because it may contain hosts and passwords.
 *
 * @throws ClusterConfigurationError for a class that no module provides.
 */
export function appChecks(
  entries: readonly Entry[],
  moduleRef: Pick<ModuleRef, 'get'>,
  log: Pick<OnceAMinute, 'say'>,
): HealthIndicatorFunction[] {
  return entries.map((entry, index) => {
    const name = nameOf(entry, index);
    const check = checkOf(entry, moduleRef);
    const down = (why: string, detail = '') => {
      const what = `health indicator "${name}" ${why}`;
      log.say(what + detail, what);
      return { [name]: { status: 'down' as const, message: `${why}; see the log` } };
    };
    const answered = async (): Promise<HealthIndicatorResult> => {
      try {
        return (await check()) as HealthIndicatorResult;
      } catch (error) {
        // Indicators for terminus 11 throw this error when they are down.
        if ((error as { isHealthCheckError?: boolean } | null)?.isHealthCheckError) throw error;
        return down('threw an error', `: ${inspected(error)}`);
      }
    };
    return () =>
      inTime(answered(), TIMEOUT_MS, () => down(`did not finish within ${TIMEOUT_MS} ms`));
  });
}

/** `DatabaseHealthIndicator` → `database`. An anonymous function gets its position in the list, from 1. */
function nameOf({ name }: Entry, index: number): string {
  const bare = name.replace(/HealthIndicator$/, '');
  return /^\w+$/.test(bare) ? bare[0]!.toLowerCase() + bare.slice(1) : `indicator${index + 1}`;
}

function checkOf(entry: Entry, moduleRef: Pick<ModuleRef, 'get'>): () => unknown {
  const isClass = /^class\b/.test(Function.prototype.toString.call(entry));
  if (!isClass) return entry as () => unknown;
  const type = entry as Type<{ check(): unknown }>;
  try {
    const instance = moduleRef.get(type, { strict: false });
    return () => instance.check();
  } catch (cause) {
    throw new ClusterConfigurationError(
      `health.indicators: ${type.name} is not a provider in the default scope; add it to the providers of a module`,
      { cause },
    );
  }
}
