import { AppView } from '../../../observe/findings/app-view.js';
import { type Check, type Examiner, findingsOf } from '../../../observe/findings/finding.js';
import { CHEAP_CHECKS } from '../../../observe/findings/start-warnings.js';
import { databasePool } from '../checks/database-pool.js';
import { forceCloseConnections, keepAlive } from '../checks/http-server.js';
import { memory } from '../checks/memory.js';
import { ownHealth, ownMetrics } from '../checks/own-endpoints.js';
import { selfRestart } from '../checks/self-restart.js';
import { sessions } from '../checks/sessions.js';
import { webSocketBroadcasts } from '../checks/web-socket-broadcasts.js';
import { SignalListeners } from './signal-listeners.js';

const CHECKS: readonly Check[] = [
  // Must be the first check, because the other checks allocate memory themselves.
  memory(),
  ...CHEAP_CHECKS,
  sessions,
  webSocketBroadcasts,
  selfRestart,
  databasePool,
  ownHealth,
  ownMetrics,
  keepAlive,
  forceCloseConnections,
];

export const startExamination: Examiner['startExamination'] = () => {
  const listeners = new SignalListeners();
  return (app, situation) => [
    ...listeners.end(),
    ...findingsOf(CHECKS, new AppView(app), situation),
  ];
};
