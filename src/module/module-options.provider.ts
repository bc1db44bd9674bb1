import type { ModuleMetadata, Provider, Type } from '@nestjs/common';
import { currentLink } from '../contract/snapshot/current-link.js';
import {
  type Class,
  type ClusterModuleOptions,
  type ClusterModuleOptionsFactory,
  MODULE_OPTIONS,
  type OffloadOptions,
  resolveLateOptions,
} from '../contract/options/module.js';

/** Options that `forRootAsync()` takes directly, because it needs them before the factory runs. */
interface AsyncOptions extends Pick<ModuleMetadata, 'imports'> {
  /** See {@link OffloadOptions.module}. The factory gives the other options of `offload`. */
  readonly offload?: Pick<OffloadOptions, 'module'> | undefined;
}

interface FromFactory extends AsyncOptions {
  readonly useFactory: (
    ...dependencies: never[]
  ) => ClusterModuleOptions | Promise<ClusterModuleOptions>;
  /** The tokens of the providers that `useFactory` gets as arguments. */
  readonly inject?: readonly unknown[] | undefined;
  readonly useClass?: undefined;
  readonly useExisting?: undefined;
}

interface FromClass extends AsyncOptions {
  /** The class that creates the options. Nest creates an instance of the class for this module. */
  readonly useClass: Type<ClusterModuleOptionsFactory>;
  readonly useFactory?: undefined;
  readonly inject?: undefined;
  readonly useExisting?: undefined;
}

interface FromExisting extends AsyncOptions {
  /** The class that creates the options. A module of `imports` or a global module must provide the class. */
  readonly useExisting: Type<ClusterModuleOptionsFactory>;
  readonly useFactory?: undefined;
  readonly inject?: undefined;
  readonly useClass?: undefined;
}

/** The options of `forRootAsync()`, with one of `useFactory`, `useClass` and `useExisting`. */
export type ClusterModuleAsyncOptions = FromFactory | FromClass | FromExisting;

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
