import { Inject, Injectable } from '@nestjs/common';
import { type HealthIndicatorResult, HealthIndicatorService } from '@nestjs/terminus';

/** The offload pool of this process. It has no threads while nothing is offloaded. */
@Injectable()
export class OffloadHealthIndicator {
  constructor(@Inject(HealthIndicatorService) private readonly health: HealthIndicatorService) {}

  check<const Key extends string = 'offload'>(key = 'offload' as Key): HealthIndicatorResult<Key> {
    return this.health.check(key).up({ threads: 0, queueSize: 0 });
  }
}
