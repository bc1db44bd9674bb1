import type { HealthIndicatorResult } from '@nestjs/terminus';
import type { ProcessStats } from '../../contract/snapshot/index.js';

/** Reports the memory of this process. Not public, because terminus has a `MemoryHealthIndicator`. */
export function memoryHealth({
  residentMemoryBytes,
  heapUsedBytes,
}: ProcessStats): HealthIndicatorResult<'memory'> {
  return { memory: { residentMemoryBytes, heapUsedBytes, status: 'up' } };
}
