import { Readable } from 'node:stream';
import { InspectionError, type InspectionFailure } from '../contract/errors/index.js';
import { MAX_PROFILE_SECONDS } from '../contract/options/index.js';
import type { RecordingKind } from '../contract/snapshot/index.js';
import type { ControlledCluster } from './controlled-cluster.js';
import { busy, type Mutations } from './mutations.js';
import { type Answer, type Handler, ok, Refusal, type Routes } from './route.js';

const DEFAULT_SECONDS = 10;

const STATUS: Readonly<Record<InspectionFailure, number>> = {
  'no-worker': 404,
  'no-watchdog': 409,
  busy: 409,
  blocked: 409,
  'no-memory': 507,
  silent: 504,
  ended: 502,
  'too-large': 502,
  failed: 502,
};

/** The routes for stacks and profiles of a worker. A profile is streamed as it arrives. */
export function profileRoutes(
  cluster: Pick<ControlledCluster, 'inspections' | 'reloading'>,
  mutations: Mutations,
): Routes {
  const { inspections } = cluster;
  const record =
    (kind: RecordingKind): Handler =>
    async ({ slot, query, gone }) => {
      const seconds = secondsIn(query);
      return streamed(inspections.record(slot, { kind, seconds }, gone));
    };
  return {
    'GET /v1/workers/:slot/stack': async ({ slot }) =>
      ok(await inspections.stack(slot).catch(refuse)),
    'POST /v1/workers/:slot/cpu-profile': record('cpu-profile'),
    'POST /v1/workers/:slot/heap-profile': record('heap-profile'),
    'POST /v1/workers/:slot/method-profile': record('method-profile'),
    'POST /v1/workers/:slot/heap-snapshot': ({ slot, gone }) => {
      // A heap snapshot replaces the worker, so it must not overlap a reload. The replacement ends
      // before the first byte is sent.
      if (cluster.reloading) throw busy('a reload');
      return mutations.run(`a heap snapshot of worker ${slot}`, () =>
        streamed(inspections.snapshot(slot, gone)),
      );
    },
  };
}

/** Waits for the first bytes, so that a failure before them is answered with its own status. */
async function streamed(bytes: AsyncGenerator<Buffer, void>): Promise<Answer> {
  const first = await bytes.next().catch(refuse);
  const stream = Readable.from(rest(first, bytes), { objectMode: false });
  // Ends the recording even if the client left before the first byte was read.
  stream.once('close', () => void bytes.return());
  return { status: 200, contentType: 'application/json; charset=utf-8', stream };
}

async function* rest(
  first: IteratorResult<Buffer, void>,
  bytes: AsyncGenerator<Buffer, void>,
): AsyncGenerator<Buffer, void> {
  if (first.done !== true) yield first.value;
  yield* bytes;
}

/** @throws Refusal */
function secondsIn(query: URLSearchParams): number {
  const text = query.get('seconds') ?? String(DEFAULT_SECONDS);
  const seconds = /^\d{1,2}$/.test(text) ? Number(text) : 0;
  if (seconds >= 1 && seconds <= MAX_PROFILE_SECONDS) return seconds;
  throw new Refusal(
    400,
    'BAD_REQUEST',
    `seconds is not as expected: a whole number from 1 to ${MAX_PROFILE_SECONDS}`,
  );
}

function refuse(error: unknown): never {
  if (!(error instanceof InspectionError)) throw error;
  throw new Refusal(
    STATUS[error.failure],
    error.failure.toUpperCase().replaceAll('-', '_'),
    error.message,
  );
}
