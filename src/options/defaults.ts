/** What an option is when nobody sets it. The one place for such numbers. */
export const DEFAULTS = Object.freeze({
  port: 3000,
  workers: 'auto',
  balancing: 'shared',
  readyTimeoutMs: 30_000,
  restart: Object.freeze({
    backoffMs: 100,
    backoffFactor: 2,
    maxBackoffMs: 15_000,
    jitterRatio: 0.2,
    stableAfterMs: 30_000,
    maxFailures: 5,
    windowMs: 60_000,
  }),
  heartbeat: Object.freeze({ intervalMs: 1_000, timeoutMs: 10_000 }),
  shutdown: Object.freeze({ lameDuckMs: 0, drainTimeoutMs: 10_000, killTimeoutMs: 2_000 }),
  logFormat: 'text',
  health: Object.freeze({ path: '/health', details: true, minReady: 1 }),
  metrics: Object.freeze({
    path: '/metrics',
    prefix: '',
    buckets: Object.freeze([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]),
    defaultMetrics: true,
  }),
} as const);
