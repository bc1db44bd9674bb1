import { AppView } from './app-view.js';
import { type Check, findingsOf } from './check.js';
import { databasePool } from './checks/database-pool.js';
import { forceCloseConnections, keepAlive } from './checks/http-server.js';
import { memory } from './checks/memory.js';
import { ownHealth, ownMetrics } from './checks/own-endpoints.js';
import { schemaSynchronization } from './checks/schema-synchronization.js';
import { sessions } from './checks/sessions.js';
import type { Finding, Situation } from './finding.js';
import { CHEAP_CHECKS } from './start-warnings.js';

const CHECKS: readonly Check<Situation>[] = [
  // First: the others hold objects of their own.
  memory(),
  ...CHEAP_CHECKS,
  sessions,
  databasePool,
  schemaSynchronization,
  ownHealth,
  ownMetrics,
  keepAlive,
  forceCloseConnections,
];

/** Everything that can be seen of an app that is up. */
export function examine(app: object, situation: Situation): readonly Finding[] {
  return findingsOf(CHECKS, new AppView(app), situation);
}
