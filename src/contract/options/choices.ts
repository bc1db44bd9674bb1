/**
 * How connections reach the workers.
 *
 * - `shared`: the primary binds one socket and keeps it open. Every worker listens on that socket,
 *   and the kernel wakes a free worker. No connection passes through the primary.
 * - `reuse-port`: the primary opens a socket with SO_REUSEPORT for each slot. The kernel chooses a
 *   socket by a hash of the connection's addresses. Linux, Node 22.12 or later.
 * - `round-robin`: the primary accepts each connection and hands it to the next worker, as
 *   node:cluster does. Connections made while no worker is alive are refused.
 * - `ports`: the worker of slot k listens on `port + k`, for a load balancer in front.
 */
export type BalancingStrategy = (typeof BALANCING_STRATEGIES)[number];

export const BALANCING_STRATEGIES = ['shared', 'reuse-port', 'round-robin', 'ports'] as const;

/** The values of the option `expose`. */
export const EXPOSE = ['app', 'admin'] as const;

/** The place where a `@CpuBound()` method runs: in a thread of the pool, or on the event loop. */
export type OffloadMode = (typeof OFFLOAD_MODES)[number];

export const OFFLOAD_MODES = ['threads', 'inline'] as const;
