import { Inject, Injectable, Scope } from '@nestjs/common';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { setCurrentLink } from '../../../src/contract/snapshot/current-link.js';
import { OnClusterEvent } from '../../../src/module/on-cluster-event.js';
import { ClusterModule } from '../../../src/module/cluster.module.js';
import { ClusterService } from '../../../src/module/cluster.service.js';
import type { ClusterEventMap } from '../../../src/contract/log/events.js';
import { ProcessLink } from '../../../src/worker/link/process-link.js';
import { contextOf } from '../support/nest-app.js';

const EXIT: ClusterEventMap['worker-exit'] = {
  worker: { slot: 1, generation: 0, pid: 42 },
  cause: 'crash',
  failed: true,
  detail: 'exited with code 1',
};

afterEach(() => setCurrentLink(undefined));

class Base {
  readonly received: unknown[] = [];
  @OnClusterEvent('started')
  @OnClusterEvent('worker-exit')
  onExit(event: unknown) {
    this.received.push(event);
  }
}

class Alerts extends Base {
  @OnClusterEvent('worker-exit')
  onFailure(event: unknown) {
    this.received.push(['failure', event]);
  }
}

async function start(providers: object[]) {
  const link = new ProcessLink();
  setCurrentLink(link);
  const imports = [ClusterModule.forRoot({ health: false, metrics: false })];
  return { link, app: await contextOf({ imports, providers: providers as never[] }) };
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
    @Injectable({ scope: Scope.REQUEST })
    class Each {
      @OnClusterEvent('worker-exit') onExit() {}
    }
    await expect(start([Each])).rejects.toThrow(
      '@OnClusterEvent() on Each.onExit cannot work: the class does not have the default scope',
    );
  });

  it('is refused with an unknown event', async () => {
    class Wrong {
      @OnClusterEvent('worker-exploded' as 'warning') onExit() {}
    }
    await expect(start([Wrong])).rejects.toThrow('name of an event: "worker-exploded"');
  });
});

it('ClusterService calls listeners until they are removed', async () => {
  class Subject {
    constructor(@Inject(ClusterService) readonly cluster: ClusterService) {}
  }
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
