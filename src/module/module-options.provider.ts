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

/** Options of `forRootAsync()` itself, because they are needed before any factory runs. */
interface AsyncOptions extends Pick<ModuleMetadata, 'imports'> {
  /** See {@link OffloadOptions.module}; the rest of `offload` is in what the factory gives. */
  readonly offload?: Pick<OffloadOptions, 'module'> | undefined;
}

interface FromFactory extends AsyncOptions {
  readonly useFactory: (
    ...dependencies: never[]
  ) => ClusterModuleOptions | Promise<ClusterModuleOptions>;
  /** Providers that `useFactory` takes. */
  readonly inject?: readonly unknown[] | undefined;
  readonly useClass?: undefined;
  readonly useExisting?: undefined;
}

interface FromClass extends AsyncOptions {
  /** Instantiated for it. */
  readonly useClass: Type<ClusterModuleOptionsFactory>;
  readonly useFactory?: undefined;
  readonly inject?: undefined;
  readonly useExisting?: undefined;
}

interface FromExisting extends AsyncOptions {
  /** Provided by one of `imports`, or by a global module. */
  readonly useExisting: Type<ClusterModuleOptionsFactory>;
  readonly useFactory?: undefined;
  readonly inject?: undefined;
  readonly useClass?: undefined;
}

/** How `forRootAsync()` gets its options: from one of `useFactory`, `useClass` and `useExisting`. */
export type ClusterModuleAsyncOptions = FromFactory | FromClass | FromExisting;

/** Providers of the options once they are there. */
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
