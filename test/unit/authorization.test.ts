import { expect, it } from 'vitest';
import { Authorization, hashOf, MAX_WRONG_TOKENS } from '../../src/admin/authorization.js';

const TOKEN = 'correct-horse-battery';
const WRONG = 'Bearer wrong-horse-battery';
const RIGHT = `Bearer ${TOKEN}`;

function guarded(token: string | undefined = TOKEN) {
  let now = 0;
  const guard = new Authorization(token === undefined ? undefined : hashOf(token), () => now);
  return {
    /** The status that a request is refused with. */
    ask: (authorization?: string, remoteAddress = '10.0.0.1') =>
      guard.refusalOf({
        headers: { ...(authorization !== undefined && { authorization }) },
        socket: { remoteAddress },
      }),
    pass: (ms: number) => (now += ms),
  };
}

it.each([RIGHT, `bearer ${TOKEN}`, `Bearer  ${TOKEN} `])(
  'lets in who sends %j',
  (authorization) => {
    expect(guarded().ask(authorization)).toBeUndefined();
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
  const refusal = guarded().ask(authorization);
  expect(refusal).toMatchObject({
    status: 401,
    headers: { 'WWW-Authenticate': 'Bearer realm="nestjs-cluster"' },
  });
  expect(JSON.stringify(refusal)).not.toContain('horse');
});

it('lets everybody in where no token is wanted', () => {
  const open = new Authorization(undefined);
  expect(open.refusalOf({ headers: {}, socket: { remoteAddress: undefined } })).toBeUndefined();
});

it('does not listen for the rest of a minute to an address that sends wrong tokens', () => {
  const { ask, pass } = guarded();
  for (let i = 0; i < MAX_WRONG_TOKENS; i += 1) expect(ask(WRONG)?.status).toBe(401);
  pass(20_000);

  expect(ask(WRONG)).toMatchObject({ status: 429, headers: { 'Retry-After': '40' } });
  expect(ask(RIGHT)?.status).toBe(429);
  expect(ask(RIGHT, '10.0.0.2')).toBeUndefined();

  pass(40_000);
  expect(ask(RIGHT)).toBeUndefined();
  expect(ask(WRONG)?.status).toBe(401);
});

it('does not take a request without a token for a guess: probes send none', () => {
  const { ask } = guarded();
  for (let i = 0; i < 2 * MAX_WRONG_TOKENS; i += 1) ask();
  expect(ask(RIGHT)).toBeUndefined();
});

it('remembers a bounded number of addresses, the newest', () => {
  const { ask } = guarded();
  const addresses = Array.from({ length: 1_001 }, (_, i) => `10.1.${i >> 8}.${i & 255}`);
  for (const address of addresses) {
    for (let i = 0; i < MAX_WRONG_TOKENS; i += 1) ask(WRONG, address);
  }
  expect(ask(RIGHT, addresses.at(-1))?.status).toBe(429);
  expect(ask(RIGHT, addresses[1])?.status).toBe(429);
  expect(ask(RIGHT, addresses[0])).toBeUndefined();
});
