import type { PrimaryStats } from '../../contract/snapshot/index.js';
import { seconds } from './seconds.js';

/** The primary's measurements of itself, by the name of the metric without `nestjs_cluster_primary_`. */
export const PRIMARY_METRICS: readonly [
  string,
  'gauge' | 'counter',
  string,
  (primary: PrimaryStats) => number,
][] = [
  ['uptime_seconds', 'gauge', 'Time since the primary started', (stats) => stats.uptimeSeconds],
  [
    'resident_memory_bytes',
    'gauge',
    'Resident memory of the primary',
    (stats) => stats.residentMemoryBytes,
  ],
  [
    'heap_used_bytes',
    'gauge',
    'JavaScript heap in use by the primary',
    (stats) => stats.heapUsedBytes,
  ],
  [
    'event_loop_utilization_ratio',
    'gauge',
    'Share of the last heartbeat interval that the event loop of the primary was busy, 0 to 1',
    (stats) => stats.eventLoopUtilization,
  ],
  [
    'event_loop_delay_p99_seconds',
    'gauge',
    '99th percentile of the event loop delay of the primary over the last heartbeat interval',
    (stats) => seconds(stats.eventLoopDelayP99Ms),
  ],
  [
    'cpu_seconds_total',
    'counter',
    'CPU time of the primary, user and system, of all its threads',
    (stats) => stats.cpuSecondsTotal,
  ],
  [
    'gc_seconds_total',
    'counter',
    'Time that the primary spent in garbage collections',
    (stats) => stats.gcSecondsTotal,
  ],
  [
    'log_lines_dropped_total',
    'counter',
    'Lines that the primary could not write to standard output or standard error',
    (stats) => stats.logLinesDroppedTotal,
  ],
];
