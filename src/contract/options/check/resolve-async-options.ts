import * as v from 'valibot';
import { ClusterConfigurationError } from '../../errors/index.js';
import type {
  Class,
  ClusterModuleOptions,
  ResolvedModuleOptions,
} from '../module-options.interface.js';
import { offloadModule, resolveModuleOptions } from './resolve-module-options.js';
import { option, optionGroup, validate } from './validate.js';

const SOURCES = ['useFactory', 'useClass', 'useExisting'] as const;

const listOf = (expected: string) => option(v.array(v.unknown(), expected), Object.freeze([]));

const asyncOptionsSchema = optionGroup({
  imports: listOf('an array of modules'),
  inject: listOf('an array of providers'),
  useFactory: v.optional(v.function('a function that gives the options')),
  useClass: v.optional(v.function('a class with createClusterModuleOptions()')),
  useExisting: v.optional(v.unknown()),
  offload: optionGroup({ module: offloadModule }),
});

/**
 * Checks the argument of `forRootAsync()`.
 *
 * @returns `offload.module`, which is needed before the other options are known.
 * @throws ClusterConfigurationError if a key is wrong, or if not exactly one of {@link SOURCES} is
 * given.
 */
export function resolveAsyncOptions(input: unknown): Class | undefined {
  const given = validate(asyncOptionsSchema, input, 'options of forRootAsync()');
  const sources = SOURCES.filter((name) => given[name] !== undefined);
  if (sources.length !== 1) {
    throw new ClusterConfigurationError(
      `forRootAsync() takes its options from one of ${SOURCES.join(', ')}, and was given ${sources.join(' and ') || 'none of them'}; give one`,
    );
  }
  return given.offload.module;
}

/**
 * Checks the options that the source of `forRootAsync()` has returned, and adds the
 * `offload.module` that `forRootAsync()` itself was given.
 *
 * @throws ClusterConfigurationError also if the returned options have an `offload.module`. Threads
 * do not run the source, so they would not know that module.
 */
export function resolveLateOptions(
  given: ClusterModuleOptions | undefined,
  module: Class | undefined,
): ResolvedModuleOptions {
  const resolved = resolveModuleOptions(given);
  if (resolved.offload.module !== undefined) {
    throw new ClusterConfigurationError(
      'invalid module options: offload.module comes from what forRootAsync() runs to get its options, which threads do not run; give offload: { module } to forRootAsync() itself',
    );
  }
  return { ...resolved, offload: { ...resolved.offload, module } };
}
