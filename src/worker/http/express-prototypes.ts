import http, { type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { HttpApp } from '../life/worker-app.interface.js';
import { UpgradeListeners } from './upgrade-listeners.js';

/** An Express app: the prototypes that it gives each request and response. */
interface ExpressApp {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** A constructor that can also be called on an object that exists: what Node's two classes are. */
type Constructor = (this: object, ...args: never[]) => void;

/** Events whose listeners are given a request that Express never sees. */
const PLAIN_EVENTS = ['upgrade', 'connect'] as const;

/**
 * Has the HTTP server of an Express app create its requests and responses with the app's own
 * prototypes.
 *
 * Express calls `Object.setPrototypeOf()` on every request and response. V8 then gives each of them
 * a hidden class of its own, and each later access to a property is slow. If the prototype is right
 * from the start, that call changes nothing and costs nothing. An app that replaces its prototypes
 * later gets them anyway, at the old price.
 *
 * Node keeps the two classes of a server under symbols, from its options `IncomingMessage` and
 * `ServerResponse`; the same on Node 20 to 26.
 *
 * @returns whether it was done. It changes nothing with another adapter, with HTTP/2, with classes
 * of the app's own, and if Node or Express is not as expected.
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
  if (!(request instanceof http.IncomingMessage)) return false;
  if (!(response instanceof http.ServerResponse)) return false;
  const Request = withPrototype(http.IncomingMessage, request);
  const Response = withPrototype(http.ServerResponse, response);
  if (!canConstruct(Request, Response)) return false;
  Object.assign(server, { [requestKey]: Request, [responseKey]: Response });
  for (const event of PLAIN_EVENTS) UpgradeListeners.of(server, event).add(makePlain);
  return true;
}

/** The symbol under which a server keeps a class, if it is Node's own class. */
function keyOf(server: Server, description: string, expected: unknown): symbol | undefined {
  const key = Object.getOwnPropertySymbols(server).find((each) => each.description === description);
  return key !== undefined && Reflect.get(server, key) === expected ? key : undefined;
}

/** A class like `base`. Its instances have another prototype. */
function withPrototype(base: unknown, prototype: object): new (...args: never[]) => object {
  const construct = base as Constructor;
  // With the parameters that Node passes: rest parameters would cost an array each time.
  function Preset(this: object, first: never, second: never): void {
    construct.call(this, first, second);
  }
  Preset.prototype = prototype;
  // V8 sums up the fields of a class and of those that it extends, to reserve room in each instance.
  Object.setPrototypeOf(Preset, base as object);
  return Preset as unknown as new (...args: never[]) => object;
}

/** Whether both still can be made this way: a future Node may turn its functions into classes. */
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

/** A WebSocket library gets what it gets without Express: `req.query` can be assigned there, for one. */
function makePlain(request: IncomingMessage): void {
  Object.setPrototypeOf(request, http.IncomingMessage.prototype);
}
