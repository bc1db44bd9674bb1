import { NotFoundException } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { pack } from '../../../../../src/integrations/bullmq/redis/encoding.js';
import {
  announcedTask,
  announcementOf,
  queueOfTask,
  readPayload,
} from '../../../../../src/integrations/bullmq/redis/messages.js';
import { PendingCalls } from '../../../../../src/integrations/bullmq/redis/pending-calls.js';
import { describeError, type Task } from '../../../../../src/offload/index.js';
import {
  TaskAbortedException,
  TaskTimeoutException,
} from '../../../../../src/offload/offload.exceptions.js';

const TASK = { name: 'Reports.add' } as Task;

let dropped: string[];
let calls: PendingCalls;

beforeEach(() => {
  vi.useFakeTimers();
  dropped = [];
  calls = new PendingCalls('me', (why) => dropped.push(why));
});
afterEach(() => vi.useRealTimers());

const reply = (id: string, value: unknown) => JSON.stringify({ v: 1, id, ok: true, value });

describe('a call that waits for its reply', () => {
  it('is given the result of its own job', async () => {
    const [first, second] = [calls.begin(TASK, 1_000), calls.begin(TASK, 1_000)];
    calls.settle(reply(second.id, pack(new Date(0), 'it')));
    calls.settle(reply(first.id, 1));
    expect(await first.result).toBe(1);
    expect(await second.result).toEqual(new Date(0));
    expect([calls.size, vi.getTimerCount(), dropped]).toEqual([0, 0, []]);
  });

  it('throws what the method threw', async () => {
    const { id, result } = calls.begin(TASK, 1_000);
    const error = pack(describeError(new NotFoundException('no cat')), 'it');
    calls.settle(JSON.stringify({ v: 1, id, ok: false, error }));
    await expect(result).rejects.toThrow('no cat');
    await expect(result).rejects.toBeInstanceOf(NotFoundException);
  });

  it('is a 504 at its deadline, and a reply after it is dropped', async () => {
    const { id, result } = calls.begin(TASK, 1_000);
    const outcome = expect(result).rejects.toEqual(new TaskTimeoutException(TASK.name, 1_000));
    vi.advanceTimersByTime(1_000);
    await outcome;
    calls.settle(reply(id, 1));
    expect(dropped).toEqual(['late']);
  });

  it('is a 504 where it ran for longer than its time', async () => {
    const { id, result } = calls.begin(TASK, 1_000);
    calls.settle(JSON.stringify({ v: 1, id, ok: false, error: null, timeoutMs: 70 }));
    await expect(result).rejects.toEqual(new TaskTimeoutException(TASK.name, 70));
  });

  it('is sent once more, to others, where its consumer has no such method', async () => {
    let sent = 0;
    const { id, result } = calls.begin(TASK, 1_000, () => (sent += 1));
    const unknown = JSON.stringify({ v: 1, id, ok: false, error: null, unknown: true });
    calls.settle(unknown);
    expect([sent, calls.has(id), dropped]).toEqual([1, true, []]);
    calls.settle(unknown);
    expect([sent, calls.has(id), dropped]).toEqual([1, true, ['late']]);
    calls.settle(reply(id, 1));
    expect(await result).toBe(1);
  });

  it('takes the first of two replies', async () => {
    const { id, result } = calls.begin(TASK, 1_000);
    calls.settle(reply(id, 1));
    calls.settle(reply(id, 2));
    expect(await result).toBe(1);
    expect(dropped).toEqual(['late']);
  });

  it.each([
    ['no JSON', '{', 'malformed'],
    ['another shape', '[1]', 'malformed'],
    ['another version', JSON.stringify({ v: 2, id: 'me-1', ok: true, value: 1 }), 'malformed'],
    ['an id that is none', reply('../../x', 1), 'malformed'],
    ['the call of another process', reply('you-1', 1), 'foreign'],
    ['a call that never was', reply('me-99', 1), 'late'],
  ])('is not disturbed by %s', async (_what, text, why) => {
    const { id, result } = calls.begin(TASK, 1_000);
    calls.settle(text);
    expect(dropped).toEqual([why]);
    calls.settle(reply(id, 1));
    expect(await result).toBe(1);
  });

  it.each([
    { ok: true, value: { $: 'eval' } },
    { ok: false, error: { kind: 'error' } },
    { ok: false, error: 7 },
  ])('fails in words where its reply cannot be read: %o', async (hostile) => {
    const { id, result } = calls.begin(TASK, 1_000);
    calls.settle(JSON.stringify({ v: 1, id, ...hostile }));
    await expect(result).rejects.toThrow('the reply to Reports.add cannot be read');
    expect(dropped).toEqual(['malformed']);
  });

  it('is ended with its process', async () => {
    const { result } = calls.begin(TASK, 1_000);
    calls.failAll(({ name }) => new TaskAbortedException(name));
    await expect(result).rejects.toBeInstanceOf(TaskAbortedException);
    expect(vi.getTimerCount()).toBe(0);
  });
});

it('a queue of one method has a name that no queue of an app has, and that BullMQ takes', () => {
  expect(queueOfTask('reports', 'Reports.add')).toBe('reports+Reports.add');
  expect(queueOfTask('reports', 'a:b+c')).toBe('reports+a%3Ab%2Bc');
  expect(announcedTask(announcementOf('Reports.add'))).toBe('Reports.add');
  expect(announcedTask('6f1c-17')).toBeUndefined();
});

describe('what a job holds', () => {
  const call = { id: 'a-1', replyTo: 'a', deadline: 1 };
  const job = { v: 1, task: 'Reports.add', args: [1], call };

  it('is taken as it was made', () => {
    expect(readPayload(job)).toEqual(job);
  });

  it('is left to others where a newer version has made it', () => {
    expect(readPayload({ ...job, v: 2, args: 'in another way' })).toBe('newer');
  });

  it.each([
    null,
    7,
    {},
    { ...job, v: 0 },
    { ...job, v: '2' },
    { ...job, args: 'x' },
    { ...job, contexts: null },
    { ...job, task: 1 },
    { ...job, task: 'x'.repeat(301) },
    // It would be part of a key of Redis.
    { ...job, call: { ...call, replyTo: 'x:meta' } },
    { ...job, call: { ...call, deadline: null } },
    JSON.parse('{"__proto__":{"v":1,"task":"x","args":[]}}'),
  ])('is refused where it is none: %j', (data) => {
    expect(readPayload(data)).toBeUndefined();
  });
});
