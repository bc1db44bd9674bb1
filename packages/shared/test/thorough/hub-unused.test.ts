import { mkdtempSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { behaviour } from '../../../../test/support/behaviour.js';
import { ClusterProcess, stopAll } from '../../../../test/support/cluster-process.js';
import { eventually } from '../../../../test/support/eventually.js';
import { request } from '../../../../test/support/http-client.js';

afterEach(stopAll);

/** Every entry that rests on the hub. */
const ENTRIES = 'cache,events,limit,lock,throttler';

/** The numbers of threads and sockets of a process, as the kernel counts them. */
function countOf(pid: number): { readonly threads: number; readonly sockets: number } {
  const threads = readdirSync(`/proc/${pid}/task`).length;
  const sockets = readdirSync(`/proc/${pid}/fd`).filter((descriptor) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${descriptor}`).startsWith('socket:');
    } catch {
      return false; // the descriptor was closed since
    }
  }).length;
  return { threads, sockets };
}

it('has no thread and no socket more where entries are imported, until one is used', async () => {
  const start = (directory: string, imported: string) =>
    ClusterProcess.start({
      options: { workers: 1, control: false },
      env: {
        ...behaviour('locks'),
        TEST_IMPORT: imported,
        TMPDIR: directory,
      },
    });
  const directory = mkdtempSync(join(tmpdir(), 'hub-unused-'));
  const [plain, cluster] = await Promise.all([start(directory, ''), start(directory, ENTRIES)]);
  const counts = ({ pid, workerPids: [worker] }: ClusterProcess) => ({
    primary: countOf(pid),
    worker: countOf(worker!),
  });
  // Threads that Node starts by itself come when they are needed.
  for (const each of [plain, cluster]) expect((await request(each.url, '/hello')).status).toBe(200);
  await eventually(
    'both have the same',
    () => [counts(cluster), counts(plain)].map((each) => JSON.stringify(each)),
    ([one, other]) => one === other,
  );
  expect(readFileSync(`/proc/net/unix`, 'utf8')).not.toContain(`${directory}/`);

  const before = counts(cluster);
  expect((await request(cluster.url, '/exclusive')).body).toBe('done');
  expect(counts(cluster).primary.threads).toBeGreaterThan(before.primary.threads);
  expect(counts(cluster).primary.sockets).toBeGreaterThan(before.primary.sockets);
  expect(counts(cluster).worker.sockets).toBeGreaterThan(before.worker.sockets);
  expect(counts(cluster).worker.threads).toBe(before.worker.threads);
  expect(readFileSync(`/proc/net/unix`, 'utf8')).toContain(`${directory}/nestjs-cluster-thread-`);
});
