import { Command } from 'ioredis';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { OnceAMinute } from '../../../../../src/contract/errors/index.js';
import { kindOfRefusal } from '../../../../../src/integrations/bullmq/redis/queue-client.js';
import { RedisLink } from '../../../../../src/integrations/bullmq/redis/redis-link.js';

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
afterEach(() => {
  vi.useRealTimers();
  link.close();
});

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
  expect([link.up, await link.isUp()]).toEqual([false, false]);
  become('ready');
  expect([link.up, await link.isUp()]).toEqual([true, true]);
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
  say('close');
  expect(await link.isUp()).toBe(false);
  expect(lines).toEqual([]);
});

it('leaves a Redis that does not answer, and looks for it anew', async () => {
  vi.useFakeTimers();
  const { commands } = link;
  const open = () => {
    const destroy = vi.fn((error: Error) => {
      say('error', error);
      become('close');
    });
    const stream = { writable: true, write: () => true, destroy };
    Object.assign(commands, { stream, condition: { select: 0 } });
    become('ready');
    return destroy;
  };
  const destroy = open();
  const unanswered = new Command('ping');
  commands.sendCommand(unanswered);
  const asked = [commands.ping(), unanswered.promise].map((each) => each.catch(String));
  await vi.advanceTimersByTimeAsync(4_999);
  expect([link.up, destroy.mock.calls]).toEqual([true, []]);
  await vi.advanceTimersByTimeAsync(1);
  expect(await Promise.all(asked)).toEqual(Array(2).fill('Error: Command timed out'));
  expect([link.up, await link.isUp()]).toEqual([false, false]);
  expect(destroy).toHaveBeenCalledWith(new Error('it did not answer within 5 s'));
  expect(lines).toContainEqual(expect.stringContaining('(it did not answer within 5 s)'));

  // ioredis sends on the next one what was not answered.
  const destroyNext = open();
  commands.sendCommand(unanswered);
  await vi.advanceTimersByTimeAsync(0);
  expect([link.up, destroyNext.mock.calls]).toEqual([true, []]);
});

it('says once a minute what Redis refuses of every call', () => {
  vi.useFakeTimers();
  const said: string[] = [];
  const log = new OnceAMinute((line) => said.push(line));
  const warn = (line: string) => log.say(line, kindOfRefusal(line));
  for (let i = 0; i < 100; i += 1) warn(`OOM script: 5ab432e88830d57${i}, on @user_script:${i}`);
  warn('READONLY\nreplica');
  for (let i = 0; i < 100; i += 1) warn(`one of many kinds: ${'x'.repeat(i)}`);
  expect(said).toHaveLength(21);
  expect(said.slice(0, 2)).toEqual([
    'OOM script: 5ab432e88830d570, on @user_script:0',
    'READONLY | replica',
  ]);
  vi.advanceTimersByTime(60_000);
  warn('OOM script: 5ab432e88830d57f, on @user_script:7');
  expect(said.at(-1)).toContain('(and 99 times before, since it was last said)');
});

it('knows how far the clock of Redis is ahead, which all machines tell times by', async () => {
  const aheadMs = () => link.now() - Date.now();
  // The clock goes on between the two readings.
  expect(Math.abs(aheadMs())).toBeLessThan(100);
  become('ready');
  await vi.waitFor(() => expect(Math.abs(aheadMs() - 120_000)).toBeLessThan(5_000));
});
