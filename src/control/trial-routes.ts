import * as v from 'valibot';
import type { ControlledCluster } from './controlled-cluster.js';
import { busy, type Mutations } from './mutations.js';
import { mustExist, parse } from './request-body.js';
import { ok, Refusal, type Routes } from './route.js';

const EXPECTED_TRIAL = '{ "method": "Class.method", "seconds": <a whole number from 1 to 7200> }';

const trialOf = v.strictObject({
  method: v.pipe(v.string(), v.maxLength(200), v.regex(/^[^\s.]+\.[^\s.]+$/)),
  seconds: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(7_200)),
});

/** The routes for a trial of `@CpuBound()` in one worker, and for the metrics of each worker. */
export function trialRoutes(
  cluster: Pick<ControlledCluster, 'collectMetrics' | 'reloading' | 'restart' | 'snapshot'>,
  mutations: Mutations,
): Routes {
  return {
    'POST /v1/workers/:slot/trial': ({ slot, body }) => {
      const { method, seconds } = parse(trialOf, EXPECTED_TRIAL, body);
      const { workers } = cluster.snapshot();
      mustExist(slot, workers);
      if (cluster.reloading) throw busy('a reload');
      const other = workers.find(({ trial }) => trial !== undefined);
      if (other !== undefined) throw busy(`a trial of ${other.trial}`);
      const trial = { method, forMs: seconds * 1_000 };
      const reason = `a trial of ${method}`;
      return mutations.run(reason, async () => ok(await cluster.restart(slot, reason, { trial })));
    },
    'GET /v1/workers/:slot/metrics': async ({ slot }) => {
      const { workers } = await cluster.collectMetrics();
      // The newest process of a slot is the last.
      const found = workers.findLast((each) => each.slot === slot);
      if (!found?.body) throw new Refusal(404, 'NO_METRICS', `worker ${slot} has no metrics`);
      return ok(found);
    },
  };
}
