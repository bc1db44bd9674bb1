import { type DynamicModule, Inject, Injectable, Module } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { ClusterModule } from '../../../src/module/cluster.module.js';
import { ClusterService } from '../../../src/module/cluster.service.js';
import { ClusterConfigurationError } from '../../../src/contract/errors/errors.js';
import { type ClusterModuleOptions, MODULE_OPTIONS } from '../../../src/contract/options/module.js';
import { contextOf } from '../support/nest-app.js';

const NO_ENDPOINTS = { health: false, metrics: false } as const;

class Settings {
  readonly maxQueue: number = 7;
}
@Module({ providers: [Settings], exports: [Settings] })
class SettingsModule {}

@Injectable()
class Factory {
  constructor(@Inject(Settings) private readonly settings: Settings) {}
  async createClusterModuleOptions(): Promise<ClusterModuleOptions> {
    return { ...NO_ENDPOINTS, offload: { maxQueue: this.settings.maxQueue } };
  }
}

@Module({ imports: [SettingsModule], providers: [Factory], exports: [Factory] })
class FactoryModule {}

@Module({})
class Tasks {}

async function start(...imports: unknown[]) {
  const app = await contextOf({ imports: imports as DynamicModule[] });
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
      'invalid module options: offload.module was returned by the factory',
    );
    await expect(starting).rejects.toThrow('pass offload: { module } to forRootAsync() itself');
  });
});

describe('the module', () => {
  it.each([
    ['forRoot()', () => ClusterModule.forRoot(NO_ENDPOINTS)],
    ['forRootAsync()', () => ClusterModule.forRootAsync({ useFactory: () => NO_ENDPOINTS })],
  ])(
    'of %s is global: other modules inject ClusterService without importing it',
    async (_, make) => {
      class User {
        constructor(@Inject(ClusterService) readonly cluster: ClusterService) {}
      }
      @Module({ providers: [User] })
      class OtherModule {}
      await expect(start(make(), OtherModule)).resolves.toBeDefined();
    },
  );

  it.each([
    ['alone', []],
    ['beside one that has them', [ClusterModule.forRoot(NO_ENDPOINTS)]],
  ])('is refused without options, %s', async (_, others) => {
    @Module({ imports: [ClusterModule] })
    class Feature {}
    const starting = start(...others, Feature);
    await expect(starting).rejects.toThrow(ClusterConfigurationError);
    await expect(starting).rejects.toThrow(
      'import ClusterModule.forRoot() instead, in the root module only',
    );
  });
});
