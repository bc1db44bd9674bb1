import { describe, expect, it } from 'vitest';
import { ClusterUncloneableError } from '../../../../../src/contract/errors/index.js';
import { pack, packError, unpack } from '../../../../../src/integrations/bullmq/redis/encoding.js';
import { describeError, restoreError, type TaskError } from '../../../../../src/offload/index.js';

/** There and back, as Redis has it. */
function travelled(value: unknown): unknown {
  return unpack(JSON.parse(JSON.stringify(pack(value, 'the value'))));
}

describe('a value in a queue', () => {
  it.each([
    ['plain data', { a: [1, 'two', null, true, { b: 0.5 }] }],
    ['undefined', [undefined, { a: undefined }]],
    ['numbers that JSON lacks', [NaN, Infinity, -Infinity, -0]],
    ['a bigint', 2n ** 200n],
    ['dates', [new Date(1e12), new Date(NaN)]],
    ['a Buffer', { pdf: Buffer.from('%PDF') }],
    ['typed arrays', [new Float64Array([0.1, NaN]), new Uint8Array([1, 2]), new BigInt64Array(2)]],
    ['an ArrayBuffer', new Uint8Array([1, 2, 3]).buffer],
    ['a map and a set', new Map<unknown, unknown>([[{ a: 1 }, new Set([1n])]])],
    ['an object with the key of the tags', { $: 'date', v: 'x', deep: { $: 1 } }],
  ])('arrives as it was sent: %s', (_kind, value) => {
    expect(travelled(value)).toStrictEqual(value);
  });

  it('brings errors, with class, cause and properties', () => {
    const error = Object.assign(new RangeError('too many', { cause: new Error('nine') }), {
      code: 'E_NINE',
    });
    expect(travelled([error])).toEqual([error]);
    expect((travelled(error) as Error).cause).toEqual(new Error('nine'));
  });

  it('is plain data where it was of a class, as in a thread', () => {
    class Dto {
      at = new Date(0);
    }
    expect(travelled(new Dto())).toStrictEqual({ at: new Date(0) });
  });

  const circle: unknown[] = [];
  circle.push(circle);
  it.each([
    ['a function', { hooks: [{ onDone() {} }] }, 'the value.hooks[0].onDone is a function'],
    ['a symbol', [Symbol('s')], 'the value[0] is a symbol'],
    ['a circle', circle, 'nested too deep, or in a circle'],
    ['a RegExp', { r: /a/ }, 'the value.r is a RegExp'],
    ['a promise', Promise.resolve(), 'the value is a Promise'],
  ])('is refused with its path: %s', (_kind, value, message) => {
    expect(() => pack(value, 'the value')).toThrow(ClusterUncloneableError);
    expect(() => pack(value, 'the value')).toThrow(message);
  });

  it('is an error without what of it cannot travel, such as the socket of a request', () => {
    const request: Record<string, unknown> = { path: /\/api/ };
    request['self'] = request;
    const cause = Object.assign(new Error('deep'), { at: /a/ });
    const thrown = Object.assign(new TypeError('no answer', { cause }), {
      code: 'EAXIOS',
      request,
    });
    const told = JSON.parse(JSON.stringify(packError(describeError(thrown)))) as unknown;
    expect(restoreError(unpack(told) as TaskError)).toMatchObject({
      name: 'TypeError',
      message: 'no answer',
      code: 'EAXIOS',
      cause: { message: 'deep' },
    });
    expect(unpack(packError(describeError(request)))).toMatchObject({ kind: 'value' });
  });

  it('changes no prototype, whatever it says', () => {
    const hostile = JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"x":1}}}');
    const value = unpack(hostile) as Record<string, unknown>;
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(unpack({ $: 'object', v: [['__proto__', { polluted: 1 }]] })).not.toHaveProperty(
      'polluted',
    );
  });

  it.each([
    ['an unknown kind', { $: 'eval', v: 'x' }],
    ['a kind that is a name of Object', { $: 'constructor', v: [] }],
    ['a map without entries', { $: 'map', v: 7 }],
    ['a long bigint', { $: 'bigint', v: '9'.repeat(100_000) }],
    ['a number for a bigint', { $: 'bigint', v: 1 }],
    ['an array of half a number', { $: 'Float64Array', v: 'AAA=' }],
    ['an error of nothing', { $: 'error', v: { kind: 'error' } }],
    ['depth', JSON.parse('['.repeat(5_000) + ']'.repeat(5_000))],
  ])('is refused where nobody has made it so: %s', (_kind, value) => {
    expect(() => unpack(value)).toThrow();
  });
});
