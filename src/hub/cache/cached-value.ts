import { deserialize, serialize } from 'node:v8';
import * as v from 'valibot';
import { ClusterConfigurationError } from '../../contract/errors/cluster.errors.js';
import { oneLine } from '../../contract/errors/one-line.js';
import { option, optionGroup } from '../../contract/options/check/validate.js';

/** The schema of the options of one value. */
export const ttlSchema = optionGroup({ ttlMs: option(v.number('0 or more'), null) });

/** Refuses NaN, because JSON would turn it into `null`, which means no limit. @throws ClusterConfigurationError */
export function checkTtl(key: string, ttlMs: number | null): void {
  if (ttlMs === null || (typeof ttlMs === 'number' && ttlMs >= 0)) return;
  throw new ClusterConfigurationError(
    `the value of '${oneLine(key).slice(0, 40)}' lives for ${ttlMs} ms; give 0 or more, or none`,
  );
}

/** Strings and bytes are sent unchanged. Other values are copied as by `structuredClone()`. */
export function encode(value: unknown): { readonly form: string; readonly body: Buffer } {
  if (typeof value === 'string') return { form: 's', body: Buffer.from(value) };
  if (Buffer.isBuffer(value)) return { form: 'b', body: value };
  return { form: 'v', body: serialize(value) };
}

/** @returns `undefined` for a value that V8 has written and cannot read: one that is nested too deeply. */
export function decode(form: string, body: Buffer): { readonly value: unknown } | undefined {
  if (form === 's') return { value: body.toString() };
  if (form === 'b') return { value: Buffer.from(body) };
  try {
    return { value: deserialize(body) };
  } catch {
    return undefined;
  }
}
