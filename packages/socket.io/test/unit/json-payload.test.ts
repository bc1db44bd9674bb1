import { expect, it } from 'vitest';
import { decodeJson, encodeJson } from '../../src/json-payload.js';

const copied = (value: unknown) => decodeJson(encodeJson(value));

it('keeps bytes, and is JSON beside them as for a client', () => {
  const bytes = Buffer.from([0, 1, 255]);
  const value = {
    deep: [bytes, new Uint8Array([7]), new Uint8Array([8]).buffer],
    at: new Date(0),
    own: { toJSON: () => ({ inner: bytes }) },
  };
  expect(copied(value)).toEqual({
    deep: [bytes, Buffer.from([7]), Buffer.from([8])],
    at: '1970-01-01T00:00:00.000Z',
    own: { inner: bytes },
  });
});

it.each(['\u0000', '\u00000', '\u0000\u0000', '\u0000x', '{"_placeholder":true}'])(
  'takes the string %j of a client for no bytes',
  (text) => {
    const value = { text, placeholder: { _placeholder: true, num: 0 }, bytes: Buffer.from([1]) };
    expect(copied(value)).toEqual(value);
    expect(copied({ text })).toEqual({ text });
  },
);

it('keeps no view of what it was read from', () => {
  const encoded = encodeJson([Buffer.from([1])]);
  const [bytes] = decodeJson(encoded) as [Buffer];
  encoded.fill(0);
  expect(bytes).toEqual(Buffer.from([1]));
});
