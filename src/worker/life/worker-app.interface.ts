import type { ClosableApp } from '../drain/app-close.js';
import type { AdaptedApp } from '../http/express-prototypes.js';
import type { ListenableApp } from '../listen/listen.js';
import type { MicroserviceHost } from '../microservices/microservices.js';

/** What an app must be able to do to run in a worker: Nest's applications, microservices and contexts can. */
export interface WorkerApp extends ClosableApp, MicroserviceHost {
  init(): Promise<unknown>;
  /** Of an application, and of a microservice, which takes no address. */
  listen?(port?: number | string, host?: string): Promise<unknown>;
  getHttpServer?(): unknown;
}

/** An app with an HTTP server. */
export type HttpApp = WorkerApp & ListenableApp & AdaptedApp;

/** Whether it has an HTTP server: a microservice and an application context have none. */
export function isHttpApp(app: WorkerApp): app is HttpApp {
  return typeof app.getHttpServer === 'function';
}
