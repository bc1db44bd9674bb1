import 'reflect-metadata';
import { type DynamicModule, Inject, Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ClusterModule } from '../../../src/module/cluster.module.js';
import { ClusterService } from '../../../src/module/cluster.service.js';
import { ClusterConfigurationError } from '../../../src/contract/errors/index.js';
import { type ClusterModuleOptions, MODULE_OPTIONS } from '../../../src/contract/options/module.js';

const NO_ENDPOINTS = { health: false, metrics: false } as const;

class Settings {
  readonly maxQueue: number = 7;
}
class SettingsModule {}
Module({ providers: [Settings], exports: [Settings] })(SettingsModule);

class Factory {
  constructor(private readonly settings: Settings) {}
  async createClusterModuleOptions(): Promise<ClusterModuleOptions> {
    return { ...NO_ENDPOINTS, offload: { maxQueue: this.settings.maxQueue } };
  }
}
Injectable()(Factory);
Inject(Settings)(Factory, undefined, 0);

class FactoryModule {}
Module({ imports: [SettingsModule], providers: [Factory], exports: [Factory] })(FactoryModule);

class Tasks {}
Module({})(Tasks);

async function start(cluster: DynamicModule) {
  class AppModule {}
  Module({ imports: [cluster] })(AppModule);
  const app = await NestFactory.createApplicationContext(AppModule, {
    logger: false,
    abortOnError: false,
  });
  onTestFinished(() => app.close());
  return app.get<{ offload: object }>(MODULE_OPTIONS, { strict: false });
}

const forRootAsync = (options: unknown) => ClusterModule.forRootAsync(options as never);

describe('forRootAsync()', () => {
  it.each([
    [
      'useFactory',
      {
        imports: [SettingsModule],
        inject: [Settings],
        useFactory: ({ maxQueue }: Settings) => ({ ...NO_ENDPOINTS, offload: { maxQueue } }),
      },
    ],
    ['useClass', { imports: [SettingsModule], useClass: Factory }],
    ['useExisting', { imports: [FactoryModule], useExisting: Factory }],
  ])('takes its options from %s, and the module for threads beside it', async (_, options) => {
    const { offload } = await start(forRootAsync({ ...options, offload: { module: Tasks } }));
    expect(offload).toMatchObject({ maxQueue: 7, module: Tasks });
  });

  it('refuses a module for threads that is known too late', async () => {
    const late = { ...NO_ENDPOINTS, offload: { module: Tasks } };
    const starting = start(forRootAsync({ useFactory: () => late }));
    await expect(starting).rejects.toThrow(
      'invalid module options: offload.module is in the options that',
    );
    await expect(starting).rejects.toThrow('set offload: { module } in forRootAsync() itself');
  });
});

describe('the module', () => {
  /** An app with a module that injects ClusterService without importing the module. */
  async function startBeside(cluster: DynamicModule): Promise<void> {
    class User {}
    Injectable()(User);
    Inject(ClusterService)(User, undefined, 0);
    class OtherModule {}
    Module({ providers: [User] })(OtherModule);
    class AppModule {}
    Module({ imports: [cluster, OtherModule] })(AppModule);
    const settings = { logger: false, abortOnError: false } as const;
    const app = await NestFactory.createApplicationContext(AppModule, settings);
    await app.close();
  }

  it.each([
    ['forRoot()', () => ClusterModule.forRoot(NO_ENDPOINTS)],
    ['forRootAsync()', () => ClusterModule.forRootAsync({ useFactory: () => NO_ENDPOINTS })],
  ])('of %s is global', async (_, make) => {
    await expect(startBeside(make())).resolves.toBeUndefined();
  });

  it.each([
    ['alone', []],
    ['beside one that has them', [ClusterModule.forRoot(NO_ENDPOINTS)]],
  ])('is refused without options, %s', async (_, others) => {
    class Feature {}
    Module({ imports: [ClusterModule] })(Feature);
    class AppModule {}
    Module({ imports: [...others, Feature] })(AppModule);
    const settings = { logger: false, abortOnError: false } as const;
    const starting = NestFactory.createApplicationContext(AppModule, settings);
    await expect(starting).rejects.toThrow(ClusterConfigurationError);
    await expect(starting).rejects.toThrow('write ClusterModule.forRoot() in the root module');
  });
});
