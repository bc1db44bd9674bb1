import type { Queue } from 'bullmq';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { resolveQueueOptions } from '../../../../src/integrations/bullmq/queue-options.js';
import { QueueRunner } from '../../../../src/integrations/bullmq/queue-runner.js';
import { QueueClient } from '../../../../src/integrations/bullmq/redis/queue-client.js';
import { RedisLink } from '../../../../src/integrations/bullmq/redis/redis-link.js';
import { StreamReader } from '../../../../src/integrations/bullmq/redis/stream-reader.js';
import { type Submitter, type Task, TaskRejectedException } from '../../../../src/offload/index.js';

const QUEUE_TIMEOUT_MS = 5_000;
const TASK = { name: 'Reports.add', queue: 'reports', queueTimeoutMs: QUEUE_TIMEOUT_MS } as Task;

const removed = vi.fn(async () => 1);
let added: () => Promise<unknown>;

beforeEach(() => {
  vi.useFakeTimers();
  removed.mockClear();
  // Redis is there, and the link has not noticed yet that it hangs.
  vi.spyOn(RedisLink.prototype, 'up', 'get').mockReturnValue(true);
  vi.spyOn(StreamReader.prototype, 'run').mockResolvedValue();
  const queue = { add: () => added(), remove: removed } as unknown as Queue;
  vi.spyOn(QueueClient.prototype, 'queue').mockReturnValue(queue);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

async function start(onUnavailable: 'local' | 'reject') {
  const connection = { lazyConnect: true };
  const options = resolveQueueOptions({ connection, onUnavailable, consume: false });
  const runner = new QueueRunner(options);
  const local = { submit: vi.fn<Submitter['submit']>(async () => 'here') };
  await runner.start({ tasks: [TASK], local, threads: 1, measured: false });
  return { runner, local };
}

/** How long it took, by the fake clock. */
async function timed(answer: Promise<unknown>) {
  const startedAt = Date.now();
  const outcome = answer
    .catch((error: unknown) => error)
    .then((value) => ({ value, ms: Date.now() - startedAt }));
  await vi.advanceTimersByTimeAsync(60_000);
  return outcome;
}

it('a call that Redis does not confirm is refused within 5 s, and its job is removed', async () => {
  added = () => new Promise(() => {});
  const { runner, local } = await start('reject');
  const { value, ms } = await timed(runner.submit(TASK, [1], undefined));
  expect(value).toBeInstanceOf(TaskRejectedException);
  expect(ms).toBe(QUEUE_TIMEOUT_MS);
  expect(local.submit).not.toHaveBeenCalled();
  expect(removed).toHaveBeenCalled();
});

it('a call that Redis does not confirm waits for Redis and for a thread here no longer than 5 s', async () => {
  added = () => new Promise(() => {});
  const { runner, local } = await start('local');
  const { value, ms } = await timed(runner.submit(TASK, [1], undefined));
  expect(value).toBe('here');
  const [task] = local.submit.mock.calls[0]!;
  expect([ms, task.queueTimeoutMs]).toEqual([QUEUE_TIMEOUT_MS / 2, QUEUE_TIMEOUT_MS / 2]);
});

it('a call that Redis refuses at once has all of 5 s for a thread here', async () => {
  const refusal = Object.assign(new Error('OOM command not allowed'), { name: 'ReplyError' });
  added = () => Promise.reject(refusal);
  const { runner, local } = await start('local');
  await timed(runner.submit(TASK, [1], undefined));
  const [task] = local.submit.mock.calls[0]!;
  expect(task.queueTimeoutMs).toBe(QUEUE_TIMEOUT_MS);
});
