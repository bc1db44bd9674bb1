import { deserialize, serialize } from 'node:v8';
import * as v from 'valibot';

const TTL = '0 or more';

/** The schema of the options of one value. Refuses NaN, because JSON would turn it into `null`: no limit. */
export const ttlSchema = v.strictObject({
  ttlMs: v.optional(v.nullable(v.pipe(v.number(TTL), v.minValue(0, TTL))), null),
});

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
