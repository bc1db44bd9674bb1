import type { Type } from '@nestjs/common';
import type { ModuleRef } from '@nestjs/core';
import { ClusterConfigurationError } from '../../contract/errors/index.js';
import type { ResolvedModuleOptions } from '../../contract/options/module.js';

type Entry = Exclude<ResolvedModuleOptions['health'], false>['indicators'][number];
type IndicatorClass = Extract<Entry, new (...dependencies: never[]) => unknown>;

/** A health indicator of the app. */
export interface AppIndicator {
  /** The name for messages and for the key of the report if the check fails. */
  readonly name: string;
  /** The app's check. It may throw, hang or return anything. */
  readonly check: () => unknown;
}

/**
 * Prepares the indicators in `health.indicators`.
 *
 * @throws ClusterConfigurationError that names all entries that cannot work.
 */
export function appIndicators(
  entries: readonly Entry[],
  moduleRef: Pick<ModuleRef, 'get' | 'introspect'>,
): AppIndicator[] {
  const refusals: string[] = [];
  const indicators = entries.map((entry, index): AppIndicator => {
    const name = nameOf(entry, index);
    if (!isClass(entry)) return { name, check: entry as () => unknown };
    const found = instanceOf(entry, moduleRef);
    if (typeof found === 'string') refusals.push(found);
    return { name, check: () => (found as { check(): unknown }).check() };
  });
  if (refusals.length > 0) {
    throw new ClusterConfigurationError(
      `health.indicators cannot work here: ${[...new Set(refusals)].join(' | ')}`,
    );
  }
  return indicators;
}

/** `DatabaseHealthIndicator` → `database`. An entry without a name gets its place in the list, from 1. */
function nameOf(entry: Entry, index: number): string {
  const name = entry.name.replace(/HealthIndicator$/, '');
  // An arrow function in the list has no name; the name of a bound function has a space.
  if (!/^[A-Za-z]\w*$/.test(name)) return `indicator${index + 1}`;
  // HTTPProxy → httpProxy
  return name.replace(/^[A-Z]+(?![a-z])|^[A-Z]/, (capitals) => capitals.toLowerCase());
}

/**
 * Whether an entry is a class. A class may define `check` only on its instances, and a class
 * compiled to ES5 is recognised only by `check` on its prototype.
 */
function isClass(entry: Entry): entry is IndicatorClass {
  // An arrow function, a method and a bound function have no prototype.
  const prototype = entry.prototype as { check?: unknown } | undefined;
  return (
    typeof prototype?.check === 'function' ||
    /^class\b/.test(Function.prototype.toString.call(entry))
  );
}

/** @returns the app's instance of the class; if there is none, the reason and the remedy. */
function instanceOf(
  type: IndicatorClass,
  moduleRef: Pick<ModuleRef, 'get' | 'introspect'>,
): { check(): unknown } | string {
  const name = type.name || 'a class without a name';
  try {
    moduleRef.introspect(type as Type);
  } catch {
    return `${name} is provided by no module of the app; add it to the providers of one`;
  }
  let instance: { check?: unknown } | null | undefined;
  try {
    instance = moduleRef.get(type as Type<typeof instance>, { strict: false });
  } catch {
    return (
      `${name} has an instance for each request or each consumer (scope REQUEST or TRANSIENT, its own or that of something injected), and a health check belongs to none; ` +
      `give it, and all that it asks for, the default scope`
    );
  }
  if (typeof instance?.check !== 'function') {
    return `${name} has no check(), which would be asked; give it one that returns what terminus calls a HealthIndicatorResult, or name a function in its place: () => …`;
  }
  return instance as { check(): unknown };
}
