import * as v from 'valibot';
import type { ClusterSnapshot } from '../contract/snapshot/index.js';
import { Refusal } from './route.js';

const nothing = v.optional(v.strictObject({}));

/** @throws Refusal if the body has a field. */
export function expectNothing(body: unknown): void {
  parse(nothing, 'nothing, or {}', body);
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
