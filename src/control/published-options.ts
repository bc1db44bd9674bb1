import type { ResolvedClusterOptions } from '../contract/options/index.js';

/**
 * The options that a client of the control socket may see. They are listed field by
 * field, so that a new option, which may be a secret, is not published by accident.
 * JSON has no `Infinity`: `null` means no limit.
 */
export function publishedOptions(options: ResolvedClusterOptions) {
  const { address, memory, recycle, reload, shutdown, admin, log } = options;
  return {
    ...(address.kind === 'tcp'
      ? { port: address.port, host: address.host ?? null }
      : { path: address.path }),
    workers: options.workers,
    balancing: options.balancing,
    rebalance: options.rebalance,
    readyTimeoutMs: options.readyTimeoutMs,
    watchdog: options.watchdog,
    hangTimeoutMs: options.hangTimeoutMs,
    memory: { softLimitBytes: memory.softLimitBytes, hardLimitBytes: memory.hardLimitBytes },
    recycle: {
      maxRequests: recycle.maxRequests,
      maxAgeMs: recycle.maxAgeMs,
    },
    reload: { observeMs: reload.observeMs },
    shutdown: {
      lameDuckMs: shutdown.lameDuckMs,
      drainTimeoutMs: shutdown.drainTimeoutMs,
      killTimeoutMs: shutdown.killTimeoutMs,
    },
    admin: admin === undefined ? null : { port: admin.port, host: admin.host },
    log: { format: log.format, level: log.level },
  };
}

export type PublishedOptions = ReturnType<typeof publishedOptions>;
