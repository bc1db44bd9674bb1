import { Controller, Get, Inject, Param } from '@nestjs/common';
import { WebSocketGateway } from '@nestjs/websockets';
import { ClusterCache } from 'nestjs-cluster/cache';
import { ClusterLock } from 'nestjs-cluster/lock';
import { HubConnection } from './hub-connection.mjs';
import { decorate } from './routes.mjs';

const MEGABYTE = 2 ** 20;

/** Routes that use the hub. */
export class Shared {
  constructor(lock, cache) {
    Object.assign(this, { lock, cache });
  }
  /** Resolves once this worker had a lock. */
  async locked(name) {
    return this.lock.runExclusive(name, ({ token }) => ({ token }), { waitMs: 15_000 });
  }
  /**
   * Says something huge to the hub, while it holds locks on the connection of this worker and on
   * another one.
   */
  async frame(megabytes) {
    const other = await HubConnection.open();
    try {
      const { grant } = await other.ask({ op: 'lock', name: `raw ${process.pid}`, waitMs: 0 });
      return await this.lock.runExclusive(`frame ${process.pid}`, async ({ signal }) => {
        const bytes = Number(megabytes) * MEGABYTE;
        await this.cache.set('huge', 'x'.repeat(bytes));
        const { t: answer } = await other.ask({ op: 'set', cache: 'values', key: 'huge' }, bytes);
        const again = await other.ask({ op: 'lock', name: `raw ${process.pid}`, waitMs: 0 });
        // It is not given once more: the connection, and the lock with it, is still there.
        return { answer, kept: grant > 0 && again.t === 'expired' && !signal.aborted };
      });
    } finally {
      other.close();
    }
  }
}
Inject(ClusterLock)(Shared, undefined, 0);
Inject(ClusterCache)(Shared, undefined, 1);
Controller('shared')(Shared);
decorate([Get('locked/:name')], Shared.prototype, 'locked');
decorate([Get('frame/:megabytes')], Shared.prototype, 'frame');
Param('name')(Shared.prototype, 'locked', 0);
Param('megabytes')(Shared.prototype, 'frame', 0);

/** Clients of Socket.IO, whose sessions can be restored: see faults/hostile-faults.mjs. */
class Gateway {}
WebSocketGateway({ connectionStateRecovery: {} })(Gateway);

export const sharedProviders = [ClusterLock, ClusterCache, Gateway];
