import * as v from 'valibot';
import {
  clean,
  ClusterAddressError,
  InspectionError,
  type InspectionFailure,
} from '../contract/errors/index.js';
import { MAX_WORKERS } from '../contract/options/schema.js';
import { availableCores } from '../contract/process/machine.js';
import type { RecordingKind, ReloadResult, RestartResult } from '../contract/snapshot/index.js';
import { MAX_PROFILE_SECONDS } from '../contract/snapshot/inspection.js';
import { statusOf } from './cluster-status.js';
import type { Controlled } from './controlled-cluster.js';
import {
  type Handler,
  mustExist,
  parse,
  Refusal,
  refuseDuringReload,
  type Routes,
} from './route.js';

const REASON = 'control socket';

const DEFAULT_SECONDS = 10;

/**
 * The number of workers up to which a signal or a command adds workers: four for each core. A repeated
 * signal or a mistyped number would start so many processes that the primary answers nobody.
 */
export function mostWorkers(): number {
  return Math.min(MAX_WORKERS, 4 * availableCores());
}

/** The answer of `POST /v1/scale`. `ready` is below `workers` if new workers have failed. */
export interface ScaleAnswer {
  readonly from: number;
  readonly workers: number;
  readonly ready: number;
}

/** The answer of `POST /v1/stop`, once every worker has left. */
export interface StopAnswer {
  readonly exitCode: number;
}

/** The answer of a route that records a profile. The worker has written the file. */
export interface ProfileAnswer {
  readonly file: string;
}

export type { ReloadResult as ReloadAnswer, RestartResult as RestartAnswer };

/** The routes of the control socket. */
export class ControlApi {
  #end!: (exitCode: number) => void;
  readonly #ended = new Promise<number>((resolve) => (this.#end = resolve));
  readonly routes: Routes;

  constructor(controlled: Controlled) {
    const { cluster } = controlled;
    const { inspections } = cluster;
    const record = async (slot: number, kind: RecordingKind, query: URLSearchParams) => {
      const recording = { kind, seconds: secondsIn(query) };
      const file = await inspections.record(slot, recording).catch(refuseInspection);
      return { file } satisfies ProfileAnswer;
    };
    this.routes = {
      'GET /v1/status': statusOf(controlled),
      'POST /v1/reload': ({ body }) => {
        expectNothing(body);
        refuseDuringReload(cluster);
        return cluster.reload(REASON);
      },
      'POST /v1/scale': async ({ body }) => {
        const { workers, force } = parse(scaleTo, EXPECTED_WORKERS, body);
        const { desired: from } = cluster.snapshot();
        if (workers > from && !force) refuseTooMany(workers);
        const { desired, ready } = await cluster.scale(workers, REASON).catch(refuseAddress);
        return { from, workers: desired, ready } satisfies ScaleAnswer;
      },
      'POST /v1/workers/:slot/restart': ({ slot, body }) => {
        expectNothing(body);
        mustExist(slot, cluster.snapshot().workers);
        return cluster.restart(slot, REASON);
      },
      'GET /v1/workers/:slot/stack': ({ slot }) => inspections.stack(slot).catch(refuseInspection),
      'POST /v1/workers/:slot/cpu-profile': ({ slot, query }) => record(slot, 'cpu-profile', query),
      'POST /v1/workers/:slot/heap-profile': ({ slot, query }) =>
        record(slot, 'heap-profile', query),
      'POST /v1/stop': async ({ body }) => {
        expectNothing(body);
        cluster.stop(REASON);
        return { exitCode: await this.#ended } satisfies StopAnswer;
      },
    } satisfies Record<string, Handler>;
  }

  /** Answers the waiting `POST /v1/stop` requests. */
  end(exitCode: number): void {
    this.#end(exitCode);
  }
}

const nothing = v.optional(v.strictObject({}));

/** @throws Refusal if the body has a field. */
function expectNothing(body: unknown): void {
  parse(nothing, 'nothing, or {}', body);
}

const EXPECTED_WORKERS = `{ "workers": <a whole number from 1 to ${MAX_WORKERS}>, "force": <true or false, by default false> }`;

const scaleTo = v.strictObject({
  workers: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MAX_WORKERS)),
  force: v.optional(v.boolean(), false),
});

/** @throws Refusal if so many workers would slow each other and the primary down. */
function refuseTooMany(workers: number): void {
  const most = mostWorkers();
  if (workers <= most) return;
  throw new Refusal(
    409,
    'TOO_MANY',
    `${workers} workers are more than four for each core (${most}); --force, or "force": true, starts them`,
  );
}

function refuseAddress(error: unknown): never {
  if (!(error instanceof ClusterAddressError)) throw error;
  throw new Refusal(409, error.code, clean(error.message));
}

/** @throws Refusal */
function secondsIn(query: URLSearchParams): number {
  const text = query.get('seconds') ?? String(DEFAULT_SECONDS);
  const seconds = /^\d{1,2}$/.test(text) ? Number(text) : 0;
  if (seconds >= 1 && seconds <= MAX_PROFILE_SECONDS) return seconds;
  const expected = `a whole number from 1 to ${MAX_PROFILE_SECONDS}`;
  throw new Refusal(400, 'BAD_REQUEST', `seconds is not as expected: ${expected}`);
}

const STATUS: Readonly<Record<InspectionFailure, number>> = {
  'no-worker': 404,
  'no-watchdog': 409,
  busy: 409,
  silent: 504,
  ended: 502,
  failed: 502,
};

function refuseInspection(error: unknown): never {
  if (!(error instanceof InspectionError)) throw error;
  const { failure, message } = error;
  throw new Refusal(STATUS[failure], failure.toUpperCase().replaceAll('-', '_'), message);
}
