import type { ClosableApp } from '../drain/app-close.js';
import type { AdaptedApp } from '../http/express-prototypes.js';
import type { ListenableApp } from '../listen/listen.js';
import type { MicroserviceHost } from '../microservices/microservices.js';

/** An app that can run in a worker: Nest's applications, microservices and contexts can. */
export interface WorkerApp extends ClosableApp, MicroserviceHost {
  init(): Promise<unknown>;
  /** Applications have it, and microservices, which take no address. */
  listen?(port?: number | string, host?: string): Promise<unknown>;
  getHttpServer?(): unknown;
}

/** An app with an HTTP server. */
export type HttpApp = WorkerApp & ListenableApp & AdaptedApp;

/** Whether it has an HTTP server: a microservice and an application context have none. */
export function isHttpApp(app: WorkerApp): app is HttpApp {
  return typeof app.getHttpServer === 'function';
}
