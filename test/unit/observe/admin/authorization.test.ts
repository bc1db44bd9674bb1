import { expect, it } from 'vitest';
import { hashOf, unauthorized } from '../../../../src/observe/admin/authorization.js';

const TOKEN = 'correct-horse-battery';
const WRONG = 'Bearer wrong-horse-battery';
const RIGHT = `Bearer ${TOKEN}`;

const ask = (authorization?: string) =>
  unauthorized(
    { headers: { ...(authorization !== undefined && { authorization }) } },
    hashOf(TOKEN),
  );

it.each([RIGHT, `bearer ${TOKEN}`, `Bearer  ${TOKEN} `])(
  'lets in who sends %j',
  (authorization) => {
    expect(ask(authorization)).toBeUndefined();
  },
);

it.each([
  undefined,
  '',
  TOKEN,
  'Bearer',
  'Bearer ',
  WRONG,
  `Bearer ${TOKEN}x`,
  `Bearer ${TOKEN.slice(1)}`,
  `Bearer ${TOKEN.toUpperCase()}`,
  `Bearer ${TOKEN} ${TOKEN}`,
  `Basic ${TOKEN}`,
  `x${RIGHT}`,
])('asks for the token where %j is sent, and repeats nothing of it', (authorization) => {
  const refusal = ask(authorization);
  expect(refusal).toMatchObject({
    status: 401,
    headers: { 'WWW-Authenticate': 'Bearer realm="nestjs-cluster"' },
  });
  expect(JSON.stringify(refusal)).not.toContain('horse');
});

it('lets everybody in where no token is wanted', () => {
  expect(unauthorized({ headers: {} }, undefined)).toBeUndefined();
});
