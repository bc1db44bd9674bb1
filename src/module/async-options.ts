import type { ModuleMetadata, Provider, Type } from '@nestjs/common';
import * as v from 'valibot';
import { ClusterConfigurationError } from '../contract/errors/index.js';
import {
  type Class,
  type ClusterModuleOptions,
  type ClusterModuleOptionsFactory,
  MODULE_OPTIONS,
  offloadModule,
  type OffloadOptions,
  resolveModuleOptions,
  type ResolvedModuleOptions,
} from '../contract/options/module.js';
import { option, optionGroup, validate } from '../contract/options/schema.js';
import { currentLink } from '../contract/snapshot/current-link.js';

interface Common extends Pick<ModuleMetadata, 'imports'> {
  /** See {@link OffloadOptions.module}. It is needed before the other options are known. */
  readonly offload?: Pick<OffloadOptions, 'module'> | undefined;
  /** The tokens of the providers that `useFactory` gets as arguments. */
  readonly inject?: readonly unknown[] | undefined;
}

interface Sources {
  readonly useFactory: (
    ...dependencies: never[]
  ) => ClusterModuleOptions | Promise<ClusterModuleOptions>;
  /** The class that creates the options. Nest creates an instance of the class for this module. */
  readonly useClass: Type<ClusterModuleOptionsFactory>;
  /** The class that creates the options. A module of `imports` or a global module must provide the class. */
  readonly useExisting: Type<ClusterModuleOptionsFactory>;
}

type OneOf<T> = {
  [K in keyof T]: Pick<T, K> & { readonly [Other in Exclude<keyof T, K>]?: undefined };
}[keyof T];

/** The options of `forRootAsync()`, with one of `useFactory`, `useClass` and `useExisting`. */
export type ClusterModuleAsyncOptions = Common & OneOf<Sources>;

const asyncOptions = optionGroup({
  imports: option(v.array(v.any(), 'an array of modules'), []),
  inject: option(v.array(v.unknown(), 'an array of providers'), []),
  useFactory: v.optional(v.function('a function that gives the options')),
  useClass: v.optional(v.function('a class with createClusterModuleOptions()')),
  useExisting: v.optional(v.any()),
  offload: optionGroup({ module: offloadModule }),
} satisfies Record<keyof (Common & Sources), v.GenericSchema>);

const SOURCES = ['useFactory', 'useClass', 'useExisting'] as const;

/**
 * Checks the options of `forRootAsync()`.
 *
 * @returns `offload.module`, which is needed before the other options are known.
 * @throws ClusterConfigurationError if a key is wrong, or if not exactly one of {@link SOURCES} is
 * given.
 */
export function resolveAsyncOptions(input: unknown): Class | undefined {
  const given = validate(asyncOptions, input, 'options of forRootAsync()');
  const sources = SOURCES.filter((name) => given[name] !== undefined);
  if (sources.length !== 1) {
    throw new ClusterConfigurationError(
      `forRootAsync() needs exactly one of ${SOURCES.join(', ')}, but got ${sources.join(' and ') || 'none of them'}`,
    );
  }
  return given.offload.module;
}

/** The providers that create the options and check them. */
export function lateOptions(
  { useFactory, inject = [], useClass, useExisting }: ClusterModuleAsyncOptions,
  module: Class | undefined,
): Provider[] {
  const give =
    useFactory ?? ((factory: ClusterModuleOptionsFactory) => factory.createClusterModuleOptions());
  return [
    ...(useClass ? [useClass] : []),
    {
      provide: MODULE_OPTIONS,
      inject: (useFactory ? [...inject] : [useClass ?? useExisting]) as never[],
      useFactory: async (...dependencies: never[]) => {
        const given = await (give as (...of: never[]) => unknown)(...dependencies);
        try {
          return resolveLateOptions(given as ClusterModuleOptions, module);
        } catch (error) {
          await currentLink()?.reportBootFailure(error);
          throw error;
        }
      },
    },
  ];
}

/**
 * Checks the options that the source of `forRootAsync()` has returned. They have no
 * `offload.module`: threads do not run the source, so they would not know that module.
 */
function resolveLateOptions(
  given: ClusterModuleOptions | undefined,
  module: Class | undefined,
): ResolvedModuleOptions {
  const resolved = resolveModuleOptions(given);
  if (resolved.offload.module !== undefined) {
    throw new ClusterConfigurationError(
      'invalid module options: offload.module is in the options that forRootAsync() gets late, which threads never get; set offload: { module } in forRootAsync() itself',
    );
  }
  return { ...resolved, offload: { ...resolved.offload, module } };
}
