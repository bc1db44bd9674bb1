import http, { type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { HttpApp } from '../boot/served-app.js';
import { listenBeforeApp } from '../serve/tracker.js';

/** Express keeps the prototypes of its requests and responses in these properties of the app. */
interface ExpressApp {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Node's two HTTP classes are functions, so they can be called on an existing object. */
type Constructor = (this: object, ...args: never[]) => void;

/** Requests with these events go to the events' listeners, never to Express. */
const PLAIN_EVENTS = ['upgrade', 'connect'] as const;

/**
 * Makes the HTTP server of an Express app create requests and responses with the app's prototypes.
 *
 * Express calls `Object.setPrototypeOf()` on every request and response. V8 then gives each object
 * its own hidden class, which makes every later property access slow. If an object already has the
 * right prototype, Express's call changes nothing.
 *
 * @returns `false` if nothing was replaced: the adapter is not Express, the server speaks HTTP/2 or
 *   has its own classes, or this version of Node or Express is unsupported.
 */
export function presetExpressPrototypes(
  app: Pick<HttpApp, 'getHttpServer' | 'getHttpAdapter'>,
): boolean {
  const adapter = app.getHttpAdapter?.();
  if (adapter?.getType() !== 'express') return false;
  const { request, response } = adapter.getInstance() as ExpressApp;
  const server = app.getHttpServer() as Server;
  const requestKey = keyOf(server, 'IncomingMessage', http.IncomingMessage);
  const responseKey = keyOf(server, 'ServerResponse', http.ServerResponse);
  if (requestKey === undefined || responseKey === undefined) return false;
  const Request = withPrototype(http.IncomingMessage, request);
  const Response = withPrototype(http.ServerResponse, response);
  if (!canConstruct(Request, Response)) return false;
  Object.assign(server, { [requestKey]: Request, [responseKey]: Response });
  for (const event of PLAIN_EVENTS) listenBeforeApp(server, event, makePlain);
  return true;
}

/** The symbol of the server property where Node 20 to 26 keeps a class. `undefined` if the class is not Node's. */
function keyOf(server: Server, description: string, expected: unknown): symbol | undefined {
  const key = Object.getOwnPropertySymbols(server).find((each) => each.description === description);
  return key !== undefined && Reflect.get(server, key) === expected ? key : undefined;
}

/** Returns a class like `base` whose instances have the given prototype. */
function withPrototype(base: unknown, prototype: object): new (...args: never[]) => object {
  const construct = base as Constructor;
  // Node passes two arguments. Rest parameters would create an array for each call.
  function Preset(this: object, first: never, second: never): void {
    construct.call(this, first, second);
  }
  Preset.prototype = prototype;
  // V8 reserves space in each instance for the fields of all classes in this chain.
  Object.setPrototypeOf(Preset, base as object);
  return Preset as unknown as new (...args: never[]) => object;
}

/** A future Node may turn its functions into classes, which cannot be called on an existing object. */
function canConstruct(
  Request: new (...args: never[]) => object,
  Response: new (...args: never[]) => object,
): boolean {
  try {
    const request = new Request();
    return new Response(request as never, undefined as never) instanceof http.ServerResponse;
  } catch {
    return false;
  }
}

/** Restores Node's own prototype. With Express's prototype, a WebSocket library cannot set `req.query`. */
function makePlain(request: IncomingMessage): void {
  Object.setPrototypeOf(request, http.IncomingMessage.prototype);
}
