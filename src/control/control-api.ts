import * as v from 'valibot';
import { ClusterAddressError, clean } from '../contract/errors/index.js';
import { MAX_WORKERS } from '../contract/options/index.js';
import type { ReloadResult, RestartResult } from '../contract/snapshot/index.js';
import { statusOf } from './cluster-status.js';
import type { Controlled } from './controlled-cluster.js';
import { EventStream } from './event-stream.js';
import { busy, Mutations } from './mutations.js';
import { profileRoutes } from './profile-routes.js';
import { expectNothing, mustExist, parse } from './request-body.js';
import { ok, Refusal, type Routes } from './route.js';

const REASON = 'control socket';

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

export type { ReloadResult as ReloadAnswer, RestartResult as RestartAnswer };

/** The routes of the control socket. */
export class ControlApi {
  readonly #mutations = new Mutations();
  readonly #events: EventStream;
  #end!: (exitCode: number) => void;
  readonly #ended = new Promise<number>((resolve) => (this.#end = resolve));
  readonly routes: Routes;

  constructor(controlled: Controlled) {
    this.#events = new EventStream(controlled);
    const status = statusOf(controlled);
    const { cluster } = controlled;
    this.routes = {
      'GET /v1/status': () => ok(status()),
      'GET /v1/events': () => ({
        status: 200,
        contentType: 'text/event-stream; charset=utf-8',
        stream: this.#events.open(),
      }),
      'POST /v1/reload': ({ body }) => {
        expectNothing(body);
        // A reload that is already under way may use an older program, so its result is not an answer.
        if (cluster.reloading) throw busy('a reload');
        return this.#mutations.run('a reload', async () => ok(await cluster.reload(REASON)));
      },
      'POST /v1/scale': ({ body }) => {
        const { workers } = parse(scaleTo, EXPECTED_WORKERS, body);
        return this.#mutations.run(`a change to ${workers} workers`, async () => {
          const from = cluster.snapshot().desired;
          const { desired, ready } = await cluster.scale(workers, REASON).catch(refuseAddress);
          return ok({ from, workers: desired, ready } satisfies ScaleAnswer);
        });
      },
      'POST /v1/workers/:slot/restart': ({ slot, body }) => {
        expectNothing(body);
        mustExist(slot, cluster.snapshot().workers);
        return this.#mutations.run(`a restart of worker ${slot}`, async () =>
          ok(await cluster.restart(slot, REASON)),
        );
      },
      ...profileRoutes(cluster, this.#mutations),
      // A stop is accepted while another change is under way, and ends that change.
      'POST /v1/stop': async ({ body }) => {
        expectNothing(body);
        cluster.stop(REASON);
        return ok({ exitCode: await this.#ended } satisfies StopAnswer);
      },
    };
  }

  /** Answers the waiting `POST /v1/stop` requests, and ends the event streams. */
  end(exitCode: number): void {
    this.#end(exitCode);
    this.#events.end();
  }
}

const EXPECTED_WORKERS = `{ "workers": <a whole number from 1 to ${MAX_WORKERS}> }`;

const scaleTo = v.strictObject({
  workers: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MAX_WORKERS)),
});

function refuseAddress(error: unknown): never {
  if (!(error instanceof ClusterAddressError)) throw error;
  throw new Refusal(409, error.code, clean(error.message));
}
