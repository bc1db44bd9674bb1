import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, type StartOptions, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import type { HealthBody } from '../support/health.js';
import { NEVER_MS } from '../support/drain.js';
import { getJson, request } from '../support/http-client.js';
import {
  Gates,
  logged,
  offloadOptions,
  offloadReport,
  TaskCounts,
  writtenTimes,
  wrote,
} from '../support/offload.js';
import { describeOnce } from '../support/once.js';
import { RawClient } from '../support/raw-client.js';

const ADAPTERS = ['express', 'fastify', 'node'] as const;

const gates = new Gates();
afterAll(() => gates.remove());

type Offload = Parameters<typeof offloadOptions>[0];

/** One worker, unless asked otherwise, with the tasks that fail. */
function start(
  offload: Offload,
  { options, env }: Pick<StartOptions, 'options' | 'env'> = {},
): Promise<ClusterProcess> {
  return ClusterProcess.start({
    options: { workers: 1, ...options },
    env: { ...behaviour('offload-faults'), ...gates.env, ...offloadOptions(offload), ...env },
  });
}

/** A client that can go away. */
function leavable(cluster: ClusterProcess, path: string): http.ClientRequest {
  return http.get(`${cluster.url}${path}`, { agent: false }).on('error', () => {});
}

function counted(cluster: ClusterProcess, what: string, holds: (counts: TaskCounts) => boolean) {
  return eventually(what, () => TaskCounts.of(cluster), holds);
}

const threadOf = async (cluster: ClusterProcess): Promise<number> =>
  (await getJson(cluster.url, '/faults/where')).body.threadId;

describeOnce('the queue', () => {
  let cluster: ClusterProcess;

  beforeAll(async () => {
    cluster = await start({ threads: 1, maxQueue: 2 });
  });
  afterAll(stopAll);

  it('refuses what comes on top of a full queue by 503 with Retry-After', async () => {
    const [first, ...others] = Array.from({ length: 10 }, (_, i) => `full-${i}`);
    const running = request(cluster.url, `/faults/hold/${first}`);
    await wrote(cluster, `begun ${first}`);
    const refused: Awaited<typeof running>[] = [];
    const rest = others.map(async (name) => {
      const answer = await request(cluster.url, `/faults/hold/${name}`);
      if (answer.status !== 200) refused.push(answer);
      return answer;
    });

    // While three are held: nobody waited for one of them.
    await eventually(
      '7 refusals',
      () => refused.length,
      (count) => count === 7,
    );
    const refusals = await getJson<{ reason: string; ms: number }[]>(cluster.url, '/refusals/50');
    const busy = await TaskCounts.of(cluster);
    gates.open(first!, ...others);
    const answers = await Promise.all([running, ...rest]);

    expect(answers.filter(({ status }) => status === 200)).toHaveLength(3);
    for (const { status, headers, body } of refused) {
      expect(status).toBe(503);
      expect(headers['retry-after']).toBe('1');
      expect(JSON.parse(body)).toMatchObject({
        statusCode: 503,
        message: 'Faults.hold was not begun: too many calls are waiting',
      });
    }
    expect(new Set(refusals.body.map(({ reason }) => reason))).toEqual(new Set(['queue-full']));
    // The quickest of them: what the machine does besides is not in it.
    expect(Math.min(...refusals.body.map(({ ms }) => ms))).toBeLessThan(5);
    expect(busy.queueSize).toBe(2);
    const counts = await TaskCounts.of(cluster);
    expect(counts.of('rejected', 'Faults.hold')).toBe(7);
    expect(counts.of('completed', 'Faults.hold')).toBe(3);
    expect(counts.queueSize).toBe(0);
  });

  it('refuses what has waited for 5 s by 503, and never begins it', async () => {
    const [held, waiting] = ['holds', 'impatient'];
    const running = request(cluster.url, `/faults/hold/${held}`);
    await wrote(cluster, `begun ${held}`);

    const refused = await request(cluster.url, `/faults/hold/${waiting}`);
    gates.open(held, waiting);

    expect(refused.status).toBe(503);
    expect(refused.headers['retry-after']).toBe('1');
    expect(JSON.parse(refused.body).message).toContain('it waited too long for a thread');
    expect((await running).status).toBe(200);
    expect((await request(cluster.url, '/faults/where')).status).toBe(200);
    expect(writtenTimes(cluster, `begun ${waiting}`)).toBe(0);
    expect((await TaskCounts.of(cluster)).of('queue_timeout')).toBe(1);
  });

  it.each([900, 4_000, 45_000])(
    'copies or refuses at once an argument that is nested %i levels deep, and keeps its thread',
    async (levels) => {
      const { body } = await getJson<unknown[]>(cluster.url, `/nested/${levels}`);

      const refusal: unknown = expect.stringContaining('Maximum call stack size exceeded');
      expect(body).toEqual([body[0], levels < 1_000 ? 'completed' : refusal, body[0]]);
    },
  );

  it('answers what has run for timeoutMs by 504', async () => {
    const name = 'brief';
    const { status, body } = await getJson(cluster.url, `/faults/brief/${name}`);
    gates.open(name);

    expect(status).toBe(504);
    expect(body.message).toBe('Faults.brief did not end within 300 ms');
    await eventually(
      'the next task to run',
      () => request(cluster.url, '/faults/where'),
      (answer) => answer.status === 200,
    );
    expect((await TaskCounts.of(cluster)).of('timeout')).toBe(1);
  });
});

describeOnce.each(ADAPTERS)('on %s, when the client goes away', (adapter) => {
  let cluster: ClusterProcess;
  const named = (name: string) => `${adapter}-${name}`;

  beforeAll(async () => {
    cluster = await start({ threads: 1 }, { env: { TEST_ADAPTER: adapter } });
  });
  afterAll(stopAll);

  const abortedTasks = async () => (await TaskCounts.of(cluster)).of('aborted');

  it('ends the thread that works for it, and has another at once', async () => {
    const before = await abortedTasks();
    const thread = await threadOf(cluster);
    const leaving = leavable(cluster, `/faults/loop/${named('loop')}`);
    await wrote(cluster, `begun ${named('loop')}`);

    leaving.destroy();

    expect(await threadOf(cluster)).not.toBe(thread);
    expect(await abortedTasks()).toBe(before + 1);
    expect(await offloadReport(cluster.url)).toMatchObject({ threads: 1, running: 0 });
  });

  it('ends the task of a request whose body came in two parts', async () => {
    const before = await abortedTasks();
    const thread = await threadOf(cluster);
    const name = named('posted');
    const body = JSON.stringify({ name });
    const client = await RawClient.open(cluster.url);
    client.write(
      `POST /faults/hold HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n` +
        `Content-Length: ${body.length}\r\n\r\n${body.slice(0, 5)}`,
    );
    // A request whose body has not come is in flight, and nothing runs for it.
    await eventually(
      'the first part to arrive',
      () => getJson<HealthBody>(cluster.url, '/health'),
      (report) => report.body.details.cluster.workers[0]!.requestsInFlight === 2,
    );
    client.write(body.slice(5));
    await wrote(cluster, `begun ${name}`);

    client.destroy();

    await eventually('it to be aborted', abortedTasks, (count) => count === before + 1);
    expect(await threadOf(cluster)).not.toBe(thread);
    gates.open(name);
    expect(writtenTimes(cluster, `ended ${name}`)).toBe(0);
  });

  it('leaves alone what a request of its connection began after its answer', async () => {
    const name = named('later');
    const client = await RawClient.open(cluster.url);
    client.get(`/later/${name}`);
    await client.until(/"answered"/);
    client.get('/wait/60000');
    await eventually(
      'the next request to be in flight',
      () => getJson<HealthBody>(cluster.url, '/health'),
      ({ body }) => body.details.cluster.workers[0]!.requestsInFlight === 2,
    );
    gates.open(`call-${name}`);
    await wrote(cluster, `begun ${name}`);

    client.destroy();
    await eventually(
      'the client to be gone',
      () => getJson<HealthBody>(cluster.url, '/health'),
      ({ body }) => body.details.cluster.workers[0]!.openConnections === 1,
    );

    gates.open(name);
    await wrote(cluster, `background ${name} completed`);
  });

  // That a client has gone is seen on the adapter; what is made of it is the same on both.
  if (adapter === 'fastify') return;

  it('never runs a task that still waited', async () => {
    const before = await abortedTasks();
    const running = request(cluster.url, `/faults/hold/${named('first')}`);
    await wrote(cluster, `begun ${named('first')}`);
    const leaving = leavable(cluster, `/faults/hold/${named('left')}`);
    await counted(cluster, 'it to wait', ({ queueSize }) => queueSize === 1);

    leaving.destroy();

    const counts = await counted(cluster, 'it to leave', ({ queueSize }) => queueSize === 0);
    expect(counts.of('aborted')).toBe(before + 1);
    gates.open(named('first'), named('left'));
    expect((await running).status).toBe(200);
    expect((await request(cluster.url, '/faults/where')).status).toBe(200);
    expect(writtenTimes(cluster, `begun ${named('left')}`)).toBe(0);
  });

  it('runs those that wait behind it in the new thread', async () => {
    const thread = await threadOf(cluster);
    const leaving = leavable(cluster, `/faults/loop/${named('ahead')}`);
    await wrote(cluster, `begun ${named('ahead')}`);
    const waiting = Array.from({ length: 3 }, () => getJson(cluster.url, '/faults/where'));
    await counted(cluster, 'three to wait', ({ queueSize }) => queueSize === 3);

    leaving.destroy();

    for (const { status, body } of await Promise.all(waiting)) {
      expect(status).toBe(200);
      expect(body.threadId).not.toBe(thread);
    }
  });

  it('finishes a task without abortOnDisconnect', async () => {
    const name = named('finish');
    const before = await abortedTasks();
    const leaving = leavable(cluster, `/faults/finish/${name}`);
    await wrote(cluster, `begun ${name}`);

    leaving.destroy();

    // The one who asks is the only client left: the other is known to be gone.
    await eventually(
      'the client to be gone',
      () => getJson<HealthBody>(cluster.url, '/health'),
      ({ body }) => body.details.cluster.workers[0]!.openConnections === 1,
    );
    gates.open(name);
    await wrote(cluster, `ended ${name}`);
    expect(await abortedTasks()).toBe(before);
  });

  it('leaves alone what it has started and did not wait for', async () => {
    const name = named('background');
    const client = await RawClient.open(cluster.url);
    client.get(`/background/${name}`);
    await client.until(/"started"/);
    await wrote(cluster, `begun ${name}`);

    client.destroy();
    await client.end();

    gates.open(name);
    await wrote(cluster, `background ${name} completed`);
  });
});

describe('a thread that is lost', () => {
  let cluster: ClusterProcess;

  beforeAll(async () => {
    cluster = await start({ threads: 2 }, { env: { NODE_OPTIONS: '--max-old-space-size=96' } });
  });
  afterAll(stopAll);

  /** Does `harm` in one thread while the other works; that must go well. */
  async function besideOther<T>(name: string, harm: () => Promise<T>): Promise<T> {
    const other = getJson(cluster.url, `/faults/hold/${name}`);
    await wrote(cluster, `begun ${name}`);
    const result = await harm();
    const next = await getJson(cluster.url, '/faults/where');
    gates.open(name);
    const { status, body } = await other;
    expect([next.status, status]).toEqual([200, 200]);
    expect(next.body.threadId).not.toBe(body.threadId);
    expect([next.body.pid, body.pid]).toEqual([cluster.workerPids[0], cluster.workerPids[0]]);
    expect(cluster.all('worker-died')).toEqual([]);
    return result;
  }

  it('to an endless loop is replaced after timeoutMs, the others unharmed', async () => {
    const looping = await besideOther('beside-loop', async () =>
      getJson(cluster.url, '/faults/loop-briefly/loop'),
    );

    expect(looping.status).toBe(504);
    expect(looping.body.message).toBe('Faults.loopBriefly did not end within 500 ms');
  });

  it('because its client left, harms no other task', async () => {
    await besideOther('beside-left', async () => {
      const leaving = leavable(cluster, '/faults/loop/left-alone');
      await wrote(cluster, 'begun left-alone');
      leaving.destroy();
      await counted(cluster, 'it to be aborted', (counts) => counts.of('aborted') === 1);
    });
  });

  it('to a full heap fails its task by 500, and no process', async () => {
    const full = await besideOther('beside-heap', async () =>
      getJson(cluster.url, '/faults/out-of-memory'),
    );

    expect(full).toMatchObject({
      status: 500,
      body: { statusCode: 500, message: 'the thread of Faults.outOfMemory was lost' },
    });
    await logged(cluster, /the thread of Faults\.outOfMemory was lost: .*memory limit/);
  });

  it.each([0, 3])('to process.exit(%i) fails its task by 500, and no process', async (code) => {
    const exited = await besideOther(`beside-exit-${code}`, async () =>
      getJson(cluster.url, `/faults/exit/${code}`),
    );

    expect(exited).toMatchObject({
      status: 500,
      body: { message: 'the thread of Faults.exit was lost' },
    });
    // Each cause is said, also where the task has just lost a thread to another one.
    await logged(
      cluster,
      new RegExp(`the thread of Faults\\.exit was lost: .*exited with code: ${code}`),
    );
  });

  it.each([
    ['throw-later', 'thrown'],
    ['reject-later', 'rejected'],
  ])(
    'to an error outside of any task (%s) is replaced, and no process ends',
    async (route, how) => {
      const { status, body } = await getJson(cluster.url, `/faults/${route}/idle-${route}`);
      expect(status).toBe(200);

      gates.open(`idle-${route}`);

      await logged(cluster, new RegExp(`a thread died: Error: ${how} outside of any task`));
      const held = [`after-${route}-0`, `after-${route}-1`];
      const both = held.map((each) => getJson(cluster.url, `/faults/hold/${each}`));
      await Promise.all(held.map((each) => wrote(cluster, `begun ${each}`)));
      gates.open(...held);
      const answers = await Promise.all(both);
      expect(answers.map((answer) => answer.status)).toEqual([200, 200]);
      expect(answers.map((answer) => answer.body.threadId)).not.toContain(body.threadId);
      expect(answers[0]!.body.pid).toBe(cluster.workerPids[0]);
      expect(cluster.all('worker-died')).toEqual([]);
    },
  );
});

describe('a fault', () => {
  afterEach(stopAll);

  it('outside of a task fails the task that runs in that thread, and no other', async () => {
    const cluster = await start({ threads: 1 });
    await getJson(cluster.url, '/faults/throw-later/beside-a-task');
    const running = getJson(cluster.url, '/faults/hold/beside-the-error');
    await wrote(cluster, 'begun beside-the-error');

    gates.open('beside-a-task');

    const { status, body } = await running;
    expect(status).toBe(500);
    expect(body.message).toBe('the thread of Faults.hold was lost');
    expect((await request(cluster.url, '/faults/where')).status).toBe(200);
    expect((await TaskCounts.of(cluster)).of('thread_lost')).toBe(1);
    expect(cluster.all('worker-died')).toEqual([]);
  });
});

/** A file with a class for a thread, away from the packages that it needs. */
function tasksFile(): string {
  const path = join(mkdtempSync(join(tmpdir(), 'nestjs-cluster-')), 'tasks.mjs');
  const url = (name: string) => JSON.stringify(import.meta.resolve(name));
  writeFileSync(
    path,
    `import { Controller, Get } from ${url('@nestjs/common')};
import { CpuBound } from ${url('nestjs-cluster')};

export class Tasks {
  works() {
    return 'works';
  }
  exits() {
    process.exit(0);
  }
}
Controller('deployed')(Tasks);
for (const name of ['works', 'exits']) {
  const descriptor = Object.getOwnPropertyDescriptor(Tasks.prototype, name);
  const decorated = CpuBound()(Tasks.prototype, name, descriptor) ?? descriptor;
  Get(name)(Tasks.prototype, name, decorated);
  Object.defineProperty(Tasks.prototype, name, decorated);
}
`,
  );
  return path;
}

describeOnce('a file that is missing when a thread is to be replaced', () => {
  let cluster: ClusterProcess;
  let path: string;
  let source: string;

  beforeAll(async () => {
    path = tasksFile();
    source = readFileSync(path, 'utf8');
    cluster = await start(
      { threads: 1 },
      { env: { ...behaviour('offload-deployed'), TEST_TASKS: path } },
    );
    expect((await request(cluster.url, '/deployed/works')).body).toBe('works');
    rmSync(path);
    expect((await request(cluster.url, '/deployed/exits')).status).toBe(500);
  });
  afterAll(async () => {
    await stopAll();
    rmSync(dirname(path), { recursive: true, force: true });
  });

  it('fails each call, and says why once a minute', async () => {
    for (let i = 0; i < 3; i += 1) {
      const { status, body } = await getJson(cluster.url, '/deployed/works');
      expect([status, body.message]).toEqual([500, 'the thread of Tasks.works was lost']);
    }
    await logged(cluster, /a thread cannot import \S+tasks\.mjs/);
    expect(cluster.output.match(/a thread cannot import/g)).toHaveLength(1);
    expect((await request(cluster.url, '/hello')).status).toBe(200);
    expect(cluster.all('worker-died')).toEqual([]);
  });

  it('is run again when it is back', async () => {
    writeFileSync(path, source);

    await eventually(
      'the task to run',
      () => request(cluster.url, '/deployed/works'),
      ({ status }) => status === 200,
    );
  });
});

describeOnce('the drain', () => {
  afterEach(stopAll);

  it('finishes tasks that run and tasks that wait, with a request or without one', async () => {
    const cluster = await start(
      { threads: 1 },
      { options: { shutdown: { drainTimeoutMs: NEVER_MS } } },
    );
    const running = request(cluster.url, '/faults/hold/drain-running');
    await wrote(cluster, 'begun drain-running');
    const waiting = request(cluster.url, '/faults/hold/drain-waiting');
    // In that order: there is one thread, and what is in the background holds it until the end.
    await counted(cluster, 'one to wait', ({ queueSize }) => queueSize === 1);
    await request(cluster.url, '/background/drain-background');
    await counted(cluster, 'two to wait', ({ queueSize }) => queueSize === 2);

    cluster.kill('SIGTERM');
    await cluster.event('worker-draining');
    gates.open('drain-running', 'drain-waiting');

    expect([(await running).status, (await waiting).status]).toEqual([200, 200]);
    await wrote(cluster, 'begun drain-background');
    // Nothing is left but the task that no request waits for.
    expect(cluster.all('worker-stopped')).toEqual([]);
    gates.open('drain-background');
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    expect(writtenTimes(cluster, 'background drain-background completed')).toBe(1);
  });

  it('ends at its deadline what still runs, endless loops too', async () => {
    const cluster = await start(
      { threads: 2 },
      { options: { shutdown: { drainTimeoutMs: 500, killTimeoutMs: 10_000 } } },
    );
    const client = await RawClient.open(cluster.url);
    client.get('/faults/loop/drain-loop');
    await request(cluster.url, '/background/deadline-background');
    await request(cluster.url, '/background/deadline-waiting');
    await wrote(cluster, 'begun drain-loop');
    await wrote(cluster, 'begun deadline-background');

    cluster.kill('SIGTERM');

    await client.end();
    expect(client.text).toBe('');
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    expect(writtenTimes(cluster, 'background deadline-background TaskAbortedException')).toBe(1);
    expect(writtenTimes(cluster, 'background deadline-waiting TaskRejectedException')).toBe(1);
    expect(writtenTimes(cluster, 'begun deadline-waiting')).toBe(0);
    const [stopped] = cluster.all('worker-stopped');
    expect(stopped).toMatchObject({ problem: null, abortedRequests: 1 });
    expect(cluster.all('worker-died')).toEqual([]);
  });
});
