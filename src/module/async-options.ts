import type { ConfigurableModuleAsyncOptions, Provider } from '@nestjs/common';
import { ClusterConfigurationError } from '../contract/errors/errors.js';
import {
  type ClusterModuleOptions,
  type ClusterModuleOptionsFactory,
  MODULE_OPTIONS,
  type OffloadOptions,
  resolveModuleOptions,
  type ResolvedModuleOptions,
} from '../contract/options/module.js';
import { currentLink } from '../contract/snapshot/current-link.js';

type Async = ConfigurableModuleAsyncOptions<
  ClusterModuleOptions,
  keyof ClusterModuleOptionsFactory
>;

type Sources = Required<Pick<Async, 'useFactory' | 'useClass' | 'useExisting'>>;

type OneOf<T> = {
  [K in keyof T]: Pick<T, K> & { readonly [Other in Exclude<keyof T, K>]?: undefined };
}[keyof T];

/** The options of `forRootAsync()`, with one of `useFactory`, `useClass` and `useExisting`. */
export type ClusterModuleAsyncOptions = Omit<Async, keyof Sources> &
  OneOf<Sources> & {
    /** See {@link OffloadOptions.module}. Passed here, because it is needed before the other options are known. */
    readonly offload?: Pick<OffloadOptions, 'module'> | undefined;
  };

/** The providers that create and check the options. */
export function lateOptions({
  useFactory,
  inject = [],
  useClass,
  useExisting,
  offload,
}: ClusterModuleAsyncOptions): Provider[] {
  const resolve = async (given: ClusterModuleOptions): Promise<ResolvedModuleOptions> => {
    try {
      const resolved = resolveModuleOptions(given);
      if (resolved.offload.module === undefined) {
        return { ...resolved, offload: { ...resolved.offload, module: offload?.module } };
      }
      // Threads do not run the factory, so they would not know the module.
      throw new ClusterConfigurationError(
        'invalid module options: offload.module was returned by the factory of forRootAsync(), but threads do not run the factory; pass offload: { module } to forRootAsync() itself',
      );
    } catch (error) {
      await currentLink()?.refuseStart(error);
      throw error;
    }
  };
  if (useFactory) {
    const create = async (...given: unknown[]) => resolve(await useFactory(...given));
    return [{ provide: MODULE_OPTIONS, inject, useFactory: create }];
  }
  const create = async (factory: ClusterModuleOptionsFactory) =>
    resolve(await factory.createClusterModuleOptions());
  return [
    ...(useClass ? [useClass] : []),
    { provide: MODULE_OPTIONS, inject: [(useClass ?? useExisting)!], useFactory: create },
  ];
}
