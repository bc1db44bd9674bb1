import type { HealthIndicatorResult } from '@nestjs/terminus';
import type { ProcessStats } from '../../contract/snapshot/index.js';
import { judge, reportOf } from './limits.js';
import type { Terminus } from './terminus.js';

/**
 * The memory of this process: down above a limit, degraded above 80 % of one. Not public: terminus
 * has a `MemoryHealthIndicator`.
 */
export function memoryHealth(
  terminus: Pick<Terminus, 'knowsDegraded'>,
  { residentMemoryBytes, heapUsedBytes }: ProcessStats,
  limits: {
    readonly maxHeapUsedBytes?: number | undefined;
    readonly maxResidentMemoryBytes?: number | undefined;
  },
): HealthIndicatorResult<'memory'> {
  const judgement = judge([
    { name: 'heapUsedBytes', value: heapUsedBytes, limit: limits.maxHeapUsedBytes },
    {
      name: 'residentMemoryBytes',
      value: residentMemoryBytes,
      limit: limits.maxResidentMemoryBytes,
    },
  ]);
  return reportOf(terminus, 'memory', judgement, { residentMemoryBytes, heapUsedBytes });
}
