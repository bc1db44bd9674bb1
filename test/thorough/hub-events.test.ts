import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { request } from '../support/http-client.js';
import { residentBytesOf } from '../support/process-stats.js';

const WORKERS = 4;
/** HUB_EVENTS=100000 is the whole of it. */
const EVENTS = Number(process.env['HUB_EVENTS'] ?? 20_000);
const SENDERS = 2;
const EVENT_BYTES = 4 * 1_024;
const MIB = 1_024 * 1_024;
/** What the hub keeps for one who does not read is 1 MiB; the rest is for the collector of garbage. */
const MOST_BYTES = 32 * MIB;

afterEach(stopAll);

it(
  'keeps events in order, each once, while one worker is stopped, and little for that one',
  async () => {
    const file = join(mkdtempSync(join(tmpdir(), 'hub-events-')), 'log');
    writeFileSync(file, '');
    const cluster = await ClusterProcess.start({
      options: { workers: WORKERS, control: false, heartbeat: false },
      env: { ...behaviour('numbered-events'), TEST_FILE: file },
    });
    const ask = async (path: string) => Number((await request(cluster.url, path)).body);
    const emit = async (): Promise<number> => {
      const path = `/emit/${EVENTS / SENDERS}?bytes=${EVENT_BYTES}`;
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
    await eventually('all workers tell', async () => (await ask('/report')) === WORKERS);
    const told = () =>
      readFileSync(file, 'utf8')
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as { pid: number; heard: number; wrong: number });
    const last = () => new Map(told().map((each) => [each.pid, each]));
    await eventually('each has told', () => last().size === WORKERS);
    const heard = [...last().values()].reduce((sum, each) => sum + each.heard, 0);
    console.log(
      `${EVENTS} events of ${EVENT_BYTES} bytes in ${seconds.toFixed(1)} s; the primary: ${(rss / MIB).toFixed(0)} MiB before, at most ${(most / MIB).toFixed(0)} MiB; the stopped worker heard ${last().get(pid)!.heard}, others ${heard - last().get(pid)!.heard}`,
    );
    expect([...last().values()].map(({ wrong }) => wrong)).toEqual(Array(WORKERS).fill(0));
    // Whatever the hub says that it has sent arrives. On a machine that is busy it may say so too late.
    expect(heard).toBeGreaterThanOrEqual(before + during);
    expect(during).toBeGreaterThan(EVENTS);
    expect(during).toBeLessThan(EVENTS * WORKERS);
    expect(most - rss).toBeLessThan(MOST_BYTES);
  },
  EVENTS > 50_000 ? 300_000 : undefined,
);
