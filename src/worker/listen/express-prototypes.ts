import http, { type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { HttpApp } from '../boot/served-app.js';
import { listenBeforeApp } from '../serve/tracker.js';

/** The properties of an Express app that hold the prototypes of its requests and responses. */
interface ExpressApp {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** A constructor function that can be called on an existing object, as Node's two HTTP classes can. */
type Constructor = (this: object, ...args: never[]) => void;

/** Events whose requests go to the listeners of the event and never to Express. */
const PLAIN_EVENTS = ['upgrade', 'connect'] as const;

/**
 * Makes the HTTP server of an Express app create requests and responses with the app's own
 * prototypes.
 *
 * Express calls `Object.setPrototypeOf()` on every request and response. V8 then gives each of
 * these objects its own hidden class, and each later access to a property is slow. If the prototype
 * is right from the start, Express's call changes nothing.
 *
 * @returns whether the classes were replaced. Nothing is changed if the adapter is not Express, if
 *   the server speaks HTTP/2 or has classes of the app's own, or if Node or Express has changed.
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

/** The symbol under which a server of Node 20 to 26 keeps a class, if it is Node's own class. */
function keyOf(server: Server, description: string, expected: unknown): symbol | undefined {
  const key = Object.getOwnPropertySymbols(server).find((each) => each.description === description);
  return key !== undefined && Reflect.get(server, key) === expected ? key : undefined;
}

/** Returns a class like `base` whose instances have the given prototype. */
function withPrototype(base: unknown, prototype: object): new (...args: never[]) => object {
  const construct = base as Constructor;
  // Names the two parameters that Node passes. Rest parameters would create an array for each call.
  function Preset(this: object, first: never, second: never): void {
    construct.call(this, first, second);
  }
  Preset.prototype = prototype;
  // Extends `base`, so that V8 reserves space in each instance for the fields of all classes in the chain.
  Object.setPrototypeOf(Preset, base as object);
  return Preset as unknown as new (...args: never[]) => object;
}

/** Whether both classes work. A future Node may turn its constructor functions into classes. */
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
