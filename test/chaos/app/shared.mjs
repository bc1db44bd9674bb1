import { Controller, Get, Inject, Param } from '@nestjs/common';
import { ClusterLock } from '@nestjs-cluster/shared/lock';
import { decorate } from './routes.mjs';

/** Routes that use the hub. */
export class Shared {
  constructor(lock) {
    this.lock = lock;
  }
  /** Resolves once this worker had a lock. */
  async locked(name) {
    return this.lock.runExclusive(name, ({ token }) => ({ token }), { waitMs: 15_000 });
  }
}
Inject(ClusterLock)(Shared, undefined, 0);
Controller('shared')(Shared);
decorate([Get('locked/:name')], Shared.prototype, 'locked');
Param('name')(Shared.prototype, 'locked', 0);

export const sharedProviders = [ClusterLock];
