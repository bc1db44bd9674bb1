import * as v from 'valibot';
import { ClusterConfigurationError } from '../../errors/index.js';
import type {
  Class,
  ClusterModuleOptions,
  ResolvedModuleOptions,
} from '../module-options.interface.js';
import { offloadModule, resolveModuleOptions } from './resolve-module-options.js';
import { flag, option, optionGroup, validate } from './validate.js';

const SOURCES = ['useFactory', 'useClass', 'useExisting'] as const;

const listOf = (expected: string) => option(v.array(v.unknown(), expected), Object.freeze([]));

const asyncOptionsSchema = optionGroup({
  imports: listOf('an array of modules'),
  inject: listOf('an array of providers'),
  useFactory: v.optional(v.function('a function that gives the options')),
  useClass: v.optional(v.function('a class with createClusterModuleOptions()')),
  useExisting: v.optional(v.unknown()),
  isGlobal: option(flag, true),
  offload: optionGroup({ module: offloadModule }),
});

/** The options that `forRootAsync()` needs before the other options are known. */
export interface EarlyOptions {
  readonly isGlobal: boolean;
  readonly module: Class | undefined;
}

/**
 * Checks what `forRootAsync()` was given, as it was written.
 *
 * @throws ClusterConfigurationError for a key that is wrong, or unless one thing gives the options.
 */
export function resolveAsyncOptions(input: unknown): EarlyOptions {
  const given = validate(asyncOptionsSchema, input, 'options of forRootAsync()');
  const sources = SOURCES.filter((name) => given[name] !== undefined);
  if (sources.length !== 1) {
    throw new ClusterConfigurationError(
      `forRootAsync() takes its options from one of ${SOURCES.join(', ')}, and was given ${sources.join(' and ') || 'none of them'}; give one`,
    );
  }
  return { isGlobal: given.isGlobal, module: given.offload.module };
}

/**
 * Checks the options that come late, and adds those that were known before.
 *
 * @throws ClusterConfigurationError also where they have one of those: nothing would know it in time.
 */
export function resolveLateOptions(
  given: ClusterModuleOptions | undefined,
  { isGlobal, module }: EarlyOptions,
): ResolvedModuleOptions {
  const resolved = resolveModuleOptions(given);
  if (resolved.offload.module !== undefined) {
    refuse('offload.module', 'offload: { module }', 'threads do not run');
  }
  if (given?.isGlobal !== undefined) refuse('isGlobal', 'isGlobal', 'Nest runs too late for it');
  return { ...resolved, isGlobal, offload: { ...resolved.offload, module } };
}

function refuse(key: string, remedy: string, why: string): never {
  throw new ClusterConfigurationError(
    `invalid module options: ${key} comes from what forRootAsync() runs to get its options, which ${why}; give ${remedy} to forRootAsync() itself`,
  );
}
