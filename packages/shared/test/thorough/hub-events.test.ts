import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { behaviour } from '../../../../test/support/behaviour.js';
import { ClusterProcess, stopAll } from '../../../../test/support/cluster-process.js';
import { eventually } from '../../../../test/support/eventually.js';
import { request } from '../../../../test/support/http-client.js';
import { residentBytesOf } from '../../../../test/support/processes.js';

const WORKERS = 4;
/** HUB_EVENTS=100000 is the whole of it. */
const EVENTS = Number(process.env['HUB_EVENTS'] ?? 20_000);
const SENDERS = 2;
const EVENT_BYTES = 4 * 1_024;
const MIB = 1_024 * 1_024;
/** The hub keeps 8 MiB for each worker that reads too slowly. The rest allows for uncollected garbage. */
const MOST_BYTES = 56 * MIB;

afterEach(stopAll);

/** A cluster whose workers count what they hear. */
async function start(workers: number) {
  const file = join(mkdtempSync(join(tmpdir(), 'hub-events-')), 'log');
  writeFileSync(file, '');
  const cluster = await ClusterProcess.start({
    options: { workers, control: false, hangTimeoutMs: false },
    env: { ...behaviour('numbered-events'), TEST_FILE: file },
  });
  const ask = async (path: string) =>
    Number((await request(cluster.url, path, { timeoutMs: 60_000 })).body);
  /** Counts of the events that each worker has received, as the worker reports them. */
  const heardBy = async () => {
    await eventually('all workers tell', async () => (await ask('/report')) === workers);
    const told = () =>
      readFileSync(file, 'utf8')
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as { pid: number; heard: number; wrong: number });
    const last = () => new Map(told().map((each) => [each.pid, each]));
    await eventually('each has told', () => last().size === workers);
    return last();
  };
  return { cluster, ask, heardBy };
}

it('has every request to another worker answered through a reload', async () => {
  const { cluster } = await start(3);
  const answers: string[] = [];
  let asking = true;
  const askOn = async () => {
    while (asking) {
      const { status, body } = await request(cluster.url, '/ask/300');
      answers.push(status === 200 ? 'answered' : body);
    }
  };
  const all = Promise.all(Array.from({ length: 12 }, askOn));
  cluster.child.kill('SIGHUP');
  await cluster.event('reload-ended');
  asking = false;
  await all;
  expect(answers.filter((each) => each !== 'answered')).toEqual([]);
  expect(answers.length).toBeGreaterThan(12);
});

it(
  'keeps events in order, each once, while one worker is stopped, and little for that one',
  async () => {
    const { cluster, ask, heardBy } = await start(WORKERS);
    const emit = async (): Promise<number> => {
      const path = `/emit/${EVENTS / SENDERS}/${EVENT_BYTES}`;
      const sent = await Promise.all(Array.from({ length: SENDERS }, () => ask(path)));
      return sent.reduce((sum, each) => sum + each, 0);
    };
    const before = await emit();
    const rss = residentBytesOf(cluster.pid);
    const pid = cluster.workerPids[0]!;
    process.kill(pid, 'SIGSTOP');
    const startedAt = performance.now();
    let during = 0;
    let most = 0;
    const watch = setInterval(() => (most = Math.max(most, residentBytesOf(cluster.pid))), 20);
    try {
      during = await emit();
    } finally {
      clearInterval(watch);
      process.kill(pid, 'SIGCONT');
    }
    const seconds = (performance.now() - startedAt) / 1_000;
    const last = await heardBy();
    const heard = [...last.values()].reduce((sum, each) => sum + each.heard, 0);
    console.log(
      `${EVENTS} events of ${EVENT_BYTES} bytes in ${seconds.toFixed(1)} s; the primary: ${(rss / MIB).toFixed(0)} MiB before, at most ${(most / MIB).toFixed(0)} MiB; the stopped worker heard ${last.get(pid)!.heard}, others ${heard - last.get(pid)!.heard}`,
    );
    expect([...last.values()].map(({ wrong }) => wrong)).toEqual(Array(WORKERS).fill(0));
    // Every event that the hub counts as sent arrives. On a busy machine it may count too late.
    expect(heard).toBeGreaterThanOrEqual(before + during);
    expect(during).toBeGreaterThan(EVENTS);
    expect(during).toBeLessThan(EVENTS * WORKERS);
    expect(most - rss).toBeLessThan(MOST_BYTES);
  },
  EVENTS > 50_000 ? 300_000 : undefined,
);
