import type { EndableApp } from './app-end.js';
import type { AdaptedApp } from './express-prototypes.js';
import type { ListenableApp } from './listen.js';

/** What an app must be able to do to run in a worker. Any Nest HTTP application can. */
export interface WorkerApp extends EndableApp, ListenableApp, AdaptedApp {
  init(): Promise<unknown>;
}
