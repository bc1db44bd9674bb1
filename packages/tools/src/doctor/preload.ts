// Is loaded before the app's program, and has its app examined. Its settings are a variable in JSON.
import { AppView } from './app-view.js';
import { databasePool } from './checks/database-pool.js';
import { memory } from './checks/memory.js';
import { ownHealth, ownMetrics } from './checks/own-endpoints.js';
import { schemaSynchronization } from './checks/schema-synchronization.js';
import { sessions } from './checks/sessions.js';
import {
  type Check,
  type Examined,
  findingsOf,
  SETTINGS_VARIABLE,
  type Settings,
} from './finding.js';
import { SignalListeners } from './signal-listeners.js';

/** `memory` is the first, because the other checks allocate memory themselves. */
const CHECKS: readonly Check[] = [
  memory(),
  sessions,
  databasePool,
  schemaSynchronization,
  ownHealth,
  ownMetrics,
];

/** nestjs-cluster calls this function with the app of the program; see its `bootstrap/examination.ts`. */
type Examine = (
  app: object,
  facts: {
    readonly workers: number;
    readonly warnings: readonly string[];
    readonly ignored: readonly string[];
  },
) => Promise<void>;

const settings = JSON.parse(process.env[SETTINGS_VARIABLE] ?? '{}') as Settings;
const listeners = new SignalListeners();

const examine: Examine = async (app, { workers, warnings, ignored }) => {
  const found = findingsOf(CHECKS, new AppView(app), { ...settings, workers });
  const examined: Examined = {
    workers,
    warnings,
    ignored,
    findings: [...listeners.end(), ...found],
  };
  await new Promise<void>((resolve) => process.send!(examined, () => resolve()));
};

Reflect.set(globalThis, Symbol.for('nestjs-cluster.examine'), examine);
