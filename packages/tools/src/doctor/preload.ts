import { isMainThread } from 'node:worker_threads';
import {
  cpuBoundInline,
  inProcessEvents,
  memory,
  ownHealth,
  ownMetrics,
  schemaSynchronization,
  sessions,
  webSocketBroadcast,
} from './checks.js';
import { databasePool } from './database-pool.js';
import { type AppView, type Check, type Finding, findingsOf } from './finding.js';
import { SignalListeners } from './signal-listeners.js';

/** Key of a global function that `bootstrap()` of nestjs-cluster calls when the app listens. */
const EXAMINE = Symbol.for('nestjs-cluster.examine');

/** The startup result from `bootstrap()`, sent to the command with all findings. */
export interface Examination {
  readonly findings: readonly Finding[];
  readonly warnings: readonly string[];
  readonly ignored: readonly string[];
  readonly workers: number;
}

const CHECKS: readonly Check[] = [
  // Must be the first check, because the other checks allocate memory.
  memory(),
  inProcessEvents,
  schemaSynchronization,
  sessions,
  webSocketBroadcast,
  databasePool,
  ownHealth,
  ownMetrics,
  cpuBoundInline,
];

const settings = new URL(import.meta.url).searchParams;

// Node also preloads this file in threads, and in processes that the app forks.
if (isMainThread && process.ppid === Number(settings.get('parent'))) {
  const maxConnections = settings.get('max-connections');
  const listeners = new SignalListeners();
  const examine = (app: AppView, start: Examination): void => {
    const situation = {
      workers: start.workers,
      maxConnections: maxConnections === null ? undefined : Number(maxConnections),
    };
    const found = findingsOf(CHECKS, app, situation);
    const findings = [...start.findings, ...found, ...listeners.end()];
    process.send!({ ...start, findings } satisfies Examination);
  };
  Object.assign(globalThis, { [EXAMINE]: examine });
}
