/** The used part of an app that can run in a worker: Nest's applications, microservices and contexts can. */
export interface WorkerApp {
  init(): Promise<unknown>;
  /** @param signal for the app's shutdown hooks: why it is closed. */
  close(signal?: string): Promise<void>;
  /** Applications have it, and microservices, which take no address. */
  listen?(port?: number | string, host?: string): Promise<unknown>;
  getHttpServer?(): unknown;
  getHttpAdapter?(): { getType(): string; getInstance(): unknown };
  getMicroservices?(): readonly unknown[];
}

/** An app with an HTTP server. */
export type HttpApp = WorkerApp & Required<Pick<WorkerApp, 'listen' | 'getHttpServer'>>;

/** Whether it has an HTTP server: a microservice and an application context have none. */
export function isHttpApp(app: WorkerApp): app is HttpApp {
  return typeof app.getHttpServer === 'function';
}
