/** The used part of an app: of Nest's applications, microservices and application contexts. */
export interface WorkerApp {
  init(): Promise<unknown>;
  /** @param signal the name of the signal that the app's shutdown hooks get. */
  close(signal?: string): Promise<void>;
  /** Applications and microservices have this method. Microservices take no address. */
  listen?(port?: number | string, host?: string): Promise<unknown>;
  getHttpServer?(): unknown;
  getHttpAdapter?(): { getType(): string; getInstance(): unknown };
  getMicroservices?(): readonly unknown[];
}

export type HttpApp = WorkerApp & Required<Pick<WorkerApp, 'listen' | 'getHttpServer'>>;

/** Whether the app has an HTTP server. Microservices and application contexts have none. */
export function isHttpApp(app: WorkerApp): app is HttpApp {
  return typeof app.getHttpServer === 'function';
}
