import { existsSync, rmSync } from 'node:fs';
import { get, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { RELEASE } from '../../../../src/hub/affinity/relay-server.js';
import { SessionAffinity } from '../../../../src/hub/affinity/session-affinity.js';
import { newOwner, newSessionId, ownerOf } from '../../../../src/hub/affinity/session-id.js';
import { temporaryDirectory } from '../../../support/temporary-directory.js';

describe('a session id', () => {
  it('tells its owner', () => {
    const owner = newOwner(12);
    expect(owner).toMatch(/^12-[\da-f]{8}$/);
    expect(ownerOf(newSessionId(owner))).toBe(owner);
    expect(newSessionId(owner)).not.toBe(newSessionId(owner));
  });

  const tail = 'a'.repeat(20);
  it.each([
    undefined,
    ['0-00000000.' + tail],
    'a'.repeat(20),
    `../0-00000000.${tail}`,
    `0-00000000/x.${tail}`,
    `0-0000000g.${tail}`,
    `0-00000000.${tail}a`,
    `0-00000000.${tail}\n`,
    `00000-00000000.${tail}`,
    `-1-00000000.${tail}`,
  ])('is none: %j', (sid) => {
    expect(ownerOf(sid)).toBeUndefined();
  });
});

it('a door that was removed is opened again, where the hub is then', async () => {
  const places = ['first', 'second'].map((name) => join(temporaryDirectory(), name));
  const find = vi.fn(async () => ({
    path: `${places[find.mock.calls.length - 1] ?? places[1]}.hub`,
    token: '',
  }));
  const link = { identity: { slot: 3, generation: 0, pid: 1 }, warn: vi.fn() };
  const request = vi.fn((_request: IncomingMessage, response: ServerResponse) => {
    response.end('here');
  });
  const own = { request, upgrade: vi.fn(), release: vi.fn() };
  const affinity = new SessionAffinity(link, find, own);
  await affinity.open();
  const owner = ownerOf(affinity.newSessionId())!;
  const [first, second] = places.map((place) => `${place}.${owner}.hub`) as [string, string];
  rmSync(first);
  await vi.waitFor(() => expect(existsSync(second)).toBe(true), 5_000);
  const answer = await new Promise<IncomingMessage>((resolve) => {
    get({ socketPath: second, path: '/' }, resolve);
  });
  answer.resume();
  expect(request).toHaveBeenCalledOnce();
  expect(link.warn).not.toHaveBeenCalled();
});

it('the door refuses requests above the limit, and still releases those that wait', async () => {
  const path = join(temporaryDirectory(), 'hub.hub');
  const limit = { admits: () => false, count: vi.fn() };
  const link = {
    identity: { slot: 3, generation: 0, pid: 1 },
    warn: vi.fn(),
    connectionLimit: limit,
  };
  const own = { request: vi.fn(), upgrade: vi.fn(), release: vi.fn() };
  const find = async () => ({ path, token: '' });
  const affinity = new SessionAffinity(link, find, own);
  await affinity.open();
  const socketPath = path.replace(/\.hub$/, `.${ownerOf(affinity.newSessionId())}.hub`);
  const statusOf = (headers: Record<string, string>) =>
    new Promise((resolve) => {
      get({ socketPath, headers }, (answer) => resolve(answer.resume().statusCode)).on(
        'error',
        ({ message }) => resolve(message),
      );
    });
  expect(await statusOf({})).toBe(503);
  expect(await statusOf({ Connection: 'Upgrade', Upgrade: 'websocket' })).toBe('socket hang up');
  expect(await statusOf({ [RELEASE]: '1' })).toBe(200);
  expect(own.release).toHaveBeenCalledOnce();
  expect(own.request).not.toHaveBeenCalled();
  expect(own.upgrade).not.toHaveBeenCalled();
  expect(limit.count).toHaveBeenCalledTimes(3);
});
