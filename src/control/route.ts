import type { IncomingMessage } from 'node:http';
import * as v from 'valibot';
import type { ClusterSnapshot } from '../contract/snapshot/index.js';

const MAX_BODY_BYTES = 64 * 1024;

export interface Call {
  /** The slot of a path with `:slot`. The cluster may not have such a slot. */
  readonly slot: number;
  readonly query: URLSearchParams;
  /** The request's body, parsed as JSON; `undefined` if the request has no body. */
  readonly body: unknown;
}

/** Returns the answer, which is sent as JSON. @throws Refusal */
export type Handler = (call: Call) => Promise<object> | object;

/** The handlers by method and path. A path may hold `:slot`, which is a whole number. */
export type Routes = Readonly<Record<`${'GET' | 'POST'} /v1/${string}`, Handler>>;

/** The reason why a request is refused. */
export class Refusal extends Error {
  /** @param code is for programs, and `message` is for people. */
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** @throws Refusal if no route matches. */
export function findRoute(
  routes: Routes,
  method: string,
  path: string,
): { readonly handler: Handler; readonly slot: number } {
  const [, slot, action] = /^\/v1\/workers\/(\d{1,4})(\/.*)$/.exec(path) ?? [];
  const pattern = slot === undefined ? path : `/v1/workers/:slot${action}`;
  const handler = (each: string) =>
    Object.hasOwn(routes, `${each} ${pattern}`) ? routes[`${each} ${pattern}` as never] : undefined;
  const found = handler(method);
  if (found !== undefined) return { handler: found, slot: Number(slot) };
  const other = ['GET', 'POST'].find((each) => handler(each) !== undefined);
  if (other !== undefined) {
    throw new Refusal(405, 'METHOD_NOT_ALLOWED', `this path takes ${other} only`);
  }
  throw new Refusal(404, 'NOT_FOUND', `not found; here are ${Object.keys(routes).join(', ')}`);
}

/** @throws Refusal if the body is too large or not JSON. */
export async function readBody(request: IncomingMessage): Promise<unknown> {
  if (Number(request.headers['content-length'] ?? 0) > MAX_BODY_BYTES) throw tooLarge();
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > MAX_BODY_BYTES) throw tooLarge();
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof Refusal) throw error;
    // the client has left
    throw new Refusal(400, 'ABORTED', 'the body did not come');
  }
  if (bytes === 0) return undefined;
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch {
    throw new Refusal(400, 'BAD_REQUEST', 'the body is not JSON');
  }
}

function tooLarge(): Refusal {
  return new Refusal(413, 'TOO_LARGE', `the body is larger than ${MAX_BODY_BYTES} bytes`);
}

/** @throws Refusal that says what is expected. */
export function parse<T extends v.GenericSchema>(
  schema: T,
  expected: string,
  body: unknown,
): v.InferOutput<T> {
  const result = v.safeParse(schema, body);
  if (result.success) return result.output;
  throw new Refusal(400, 'BAD_REQUEST', `the body is not as expected: ${expected}`);
}

/** @throws Refusal if the cluster has no such slot. */
export function mustExist(slot: number, workers: ClusterSnapshot['workers']): void {
  const slots = [...new Set(workers.map((each) => each.slot))];
  if (slots.includes(slot)) return;
  throw new Refusal(404, 'NO_SUCH_SLOT', `there is no slot ${slot}: slots are ${slots.join(', ')}`);
}

/** A reload that is already under way may use an older program, so its result is not an answer. */
export function refuseDuringReload({ reloading }: { readonly reloading: boolean }): void {
  if (reloading) throw new Refusal(409, 'BUSY', 'a reload is under way; ask again when it is over');
}
