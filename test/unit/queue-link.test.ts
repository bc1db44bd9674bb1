import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { QuietLog } from '../../src/extras/bullmq/quiet-log.js';
import { RedisLink } from '../../src/extras/bullmq/redis-link.js';

let link: RedisLink;
const lines: string[] = [];

beforeEach(() => {
  lines.length = 0;
  // Nobody is asked: what ioredis tells is made up.
  const connection = { lazyConnect: true };
  link = new RedisLink(
    { connection, onUnavailable: 'reject' },
    { warn: (line: string) => lines.push(line) },
  );
  vi.spyOn(link.commands, 'time').mockImplementation(async () => [
    Math.floor(Date.now() / 1_000) + 120,
    0,
  ]);
  vi.spyOn(link.commands, 'info').mockResolvedValue('maxmemory_policy:volatile-lru\r\n');
});
afterEach(() => link.close());

const say = (event: string, ...args: unknown[]) => link.commands.emit(event, ...args);
const become = (status: string) => {
  Object.assign(link.commands, { status });
  say(status);
};

it('tells once that Redis is away, and once that it is back', async () => {
  for (let i = 0; i < 100; i += 1) {
    say('error', new Error('connect ECONNREFUSED\n127.0.0.1:6379'));
    say('close');
  }
  expect([link.up, link.away]).toEqual([false, true]);
  become('ready');
  expect([link.up, link.away]).toEqual([true, false]);
  await vi.waitFor(() => expect(lines).toHaveLength(3));
  become('ready');
  say('close');
  expect(lines).toEqual([
    expect.stringMatching(/^Redis of the queues cannot be reached \(connect ECONNREFUSED\S* /),
    'Redis of the queues is back',
    'Redis of the queues has maxmemory-policy volatile-lru, and may throw jobs away; set it to noeviction',
    expect.stringContaining('its connection was closed'),
  ]);
});

it('has those who wait for Redis wait until it is there, or their time is up', async () => {
  expect(await link.whenUp(Date.now() + 5)).toBe(false);
  const up = link.whenUp(Date.now() + 60_000);
  become('ready');
  expect(await up).toBe(true);
});

it('lets nobody wait for a Redis that was left', async () => {
  const up = link.whenUp(Date.now() + 60_000);
  link.close();
  expect(await up).toBe(false);
  expect(await link.whenUp(Date.now() + 60_000)).toBe(false);
  expect(lines).toEqual([]);
});

it('leaves a Redis that does not answer, and looks for it anew', () => {
  const disconnect = vi.spyOn(link.commands, 'disconnect').mockImplementation(() => become('end'));
  become('ready');
  link.failed(new Error('Connection is closed.'));
  expect([link.up, disconnect.mock.calls]).toEqual([true, []]);
  link.failed(new Error('Command timed out'));
  link.failed(new Error('Command timed out'));
  expect([link.up, link.away, disconnect.mock.calls]).toEqual([false, true, [[true]]]);
  expect(lines).toEqual([expect.stringContaining('(it did not answer within 5 s)')]);
});

it('says once a minute what Redis refuses of every call', () => {
  vi.useFakeTimers();
  const said: string[] = [];
  const log = new QuietLog((line) => said.push(line));
  for (let i = 0; i < 100; i += 1)
    log.warn(`OOM script: 5ab432e88830d57${i}, on @user_script:${i}`);
  log.warn('READONLY\nreplica');
  for (let i = 0; i < 100; i += 1) log.warn(`one of many kinds: ${'x'.repeat(i)}`);
  expect(said).toHaveLength(21);
  expect(said.slice(0, 2)).toEqual([
    'OOM script: 5ab432e88830d570, on @user_script:0',
    'READONLY | replica',
  ]);
  vi.advanceTimersByTime(60_000);
  log.warn('OOM script: 5ab432e88830d57f, on @user_script:7');
  expect(said.at(-1)).toContain('(and 99 times before, since it was last said)');
  vi.useRealTimers();
});

it('knows how far the clock of Redis is ahead, which all machines tell times by', async () => {
  expect(link.aheadMs).toBe(0);
  become('ready');
  await vi.waitFor(() => expect(Math.abs(link.aheadMs - 120_000)).toBeLessThan(5_000));
});
