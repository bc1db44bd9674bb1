import type { Server } from 'node:http';
import type { BootPhase } from '../../contract/ipc/index.js';
import { addressOf, ALREADY_LISTENING } from '../listen/listen.js';
import { isConsuming } from '../microservices/microservices.js';
import { type HttpApp, isHttpApp, type WorkerApp } from '../life/worker-app.interface.js';

/** The parts that belong to the process. */
export interface BringUpSteps {
  /** The app is at its next phase. */
  readonly enter: (phase: BootPhase) => void;
  /** Has the app listen on the address of this process. @returns where it can be reached. */
  readonly listen: (app: HttpApp) => Promise<string>;
  readonly warn: (message: string) => void;
}

/**
 * Initialises an app that has been created, and opens it to its clients.
 *
 * @returns where it can be reached; `null` without an HTTP server.
 */
export async function bringUp(
  app: WorkerApp,
  { enter, listen, warn }: BringUpSteps,
): Promise<string | null> {
  if (!isHttpApp(app)) {
    enter('init');
    // A microservice initialises itself as it begins to listen, and runs its hooks twice otherwise.
    if (app.listen === undefined) await app.init();
    else if (!isConsuming(app)) await app.listen();
    return null;
  }
  const server = app.getHttpServer() as Server;
  if (server.listening) {
    warn(ALREADY_LISTENING);
    return addressOf(server);
  }
  enter('init');
  await app.init();
  enter('listen');
  const url = await listen(app);
  enter('init'); // whatever fails from here on, the address could be had
  return url;
}
