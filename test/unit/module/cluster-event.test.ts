import 'reflect-metadata';
import { Inject, Injectable, Module, Scope } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { setCurrentLink } from '../../../src/contract/snapshot/current-link.js';
import { OnClusterEvent } from '../../../src/module/on-cluster-event.js';
import { ClusterModule } from '../../../src/module/cluster.module.js';
import { ClusterService } from '../../../src/module/cluster.service.js';
import type { ClusterEventMap } from '../../../src/contract/log/events.js';
import { ProcessLink } from '../../../src/worker/link/process-link.js';

const EXIT: ClusterEventMap['worker-exit'] = {
  worker: { slot: 1, generation: 0, pid: 42 },
  cause: 'crash',
  failed: true,
  detail: 'exited with code 1',
};

afterEach(() => setCurrentLink(undefined));

/** Decorates a method as a compiler does. */
function listens(type: new (...of: never[]) => object, method: string, ...events: string[]) {
  const descriptor = Object.getOwnPropertyDescriptor(type.prototype, method)!;
  for (const event of events)
    OnClusterEvent(event as 'warning')(type.prototype, method, descriptor);
}

class Base {
  readonly received: unknown[] = [];
  onExit(event: unknown) {
    this.received.push(event);
  }
  onFailure(event: unknown) {
    this.received.push(['failure', event]);
  }
}
listens(Base, 'onExit', 'worker-exit', 'started');

class Alerts extends Base {}
listens(Alerts, 'onFailure', 'worker-exit');

async function start(providers: object[]) {
  const warned = vi.fn();
  const link = new ProcessLink({ say: warned });
  setCurrentLink(link);
  class AppModule {}
  Module({
    imports: [ClusterModule.forRoot({ health: false, metrics: false })],
    providers: providers as never[],
  })(AppModule);
  const settings = { logger: false, abortOnError: false } as const;
  const app = await NestFactory.createApplicationContext(AppModule, settings);
  onTestFinished(() => app.close());
  return { app, link, warned };
}

describe('@OnClusterEvent()', () => {
  it('calls the method of each provider, also one it inherits, once for each instance', async () => {
    const { app, link } = await start([Base, Alerts, { provide: 'ALIAS', useExisting: Alerts }]);

    link.events.call('worker-exit', EXIT);
    link.events.call('stopped', { exitCode: 0, uptimeMs: 1 });

    expect(app.get(Base).received).toEqual([EXIT]);
    expect(app.get(Alerts).received).toEqual([EXIT, ['failure', EXIT]]);
  });

  it('reads no property of a provider that is a proxy, which has every property', async () => {
    function anything(of: unknown) {
      return of;
    }
    const proxy = new Proxy({}, { get: (_, key) => (key === 'then' ? undefined : anything) });
    const { link } = await start([
      { provide: 'PROXY', useFactory: () => proxy },
      { provide: 'BARE', useFactory: () => Object.create(null) as object },
      { provide: 'TEXT', useFactory: () => 'text' },
      { provide: 'ALERTS', useFactory: () => new Alerts() },
    ]);
    expect(link.events.names).toEqual(['worker-exit', 'started']);
  });

  it('is refused on a class with another scope', async () => {
    class Each {
      onExit() {}
    }
    listens(Each, 'onExit', 'worker-exit');
    Injectable({ scope: Scope.REQUEST })(Each);
    await expect(start([Each])).rejects.toThrow(
      '@OnClusterEvent() on Each.onExit cannot work: the class is not in the default scope',
    );
  });

  it('is refused with an unknown event', async () => {
    class Wrong extends Base {}
    listens(Wrong, 'onExit', 'worker-exploded');
    await expect(start([Wrong])).rejects.toThrow('name of an event: "worker-exploded"');
  });
});

it('ClusterService calls listeners until they are removed', async () => {
  class Subject {
    constructor(readonly cluster: ClusterService) {}
  }
  Inject(ClusterService)(Subject, undefined, 0);
  const { app, link } = await start([Subject]);
  const { cluster } = app.get(Subject);
  const listener = vi.fn();

  cluster.on('worker-exit', listener);
  link.events.call('worker-exit', EXIT);
  cluster.off('worker-exit', listener);
  link.events.call('worker-exit', EXIT);

  expect(listener.mock.calls).toEqual([[EXIT]]);
  expect(() => cluster.on('worker-exploded' as never, listener)).toThrow('name of an event');
});
