import { readdirSync } from 'node:fs';
import http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { answering, Servers } from '../processes.mjs';

const APP = fileURLToPath(new URL('../../../sample-app/dist/main.js', import.meta.url));
const COLLECT_GARBAGE = new URL('../apps/collect-garbage.mjs', import.meta.url).href;
const PORT = 21_430;
const REQUESTS = 10_000;
const CLIENTS = 64;

/** Some leave while they wait for a thread, some while it computes, some not at all. */
const LONGEST_STAY_MS = 300;

/**
 * Requests whose clients disconnect at random times, three times as many as
 * there are in `REQUESTS`: what was computed for nobody, and what is left of it
 * all in the worker.
 */
export async function disconnects({ node, adapters, progress }) {
  const results = [];
  for (const adapter of adapters) {
    const servers = new Servers();
    try {
      servers.start(node, APP, {
        PORT: String(PORT),
        ADAPTER: adapter,
        CLUSTER_WORKERS: '1',
        CLUSTER_LOG_FORMAT: 'json',
        NODE_OPTIONS: `--import=${COLLECT_GARBAGE}`,
      });
      await answering(`http://127.0.0.1:${PORT}/offload/fib/27`, 50);
      let before = await settled(servers);
      for (let pass = 1; pass <= 3; pass += 1) {
        const answered = await load();
        const after = await settled(servers);
        const counted = (name) => after[name] - before[name];
        const row = {
          adapter,
          pass,
          requests: REQUESTS,
          answered,
          begun: counted('begun'),
          completed: counted('completed'),
          aborted: counted('aborted'),
          threadsLost: counted('threadLost'),
          queue: after.queue,
          threads: after.threads,
          heapMegabytes: after.heapBytes / 1e6,
          osThreads: after.osThreads,
        };
        progress(JSON.stringify(row));
        results.push(row);
        before = after;
      }
    } finally {
      await servers.stop();
    }
  }
  return results;
}

async function load() {
  let left = REQUESTS;
  let answered = 0;
  const client = async () => {
    while (left-- > 0) if (await visit(Math.random() * LONGEST_STAY_MS)) answered += 1;
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  return answered;
}

/** @returns whether the answer came before the client had enough. */
function visit(stayMs) {
  return new Promise((resolve) => {
    const request = http.get(`http://127.0.0.1:${PORT}/offload/fib/27`, { agent: false });
    const leave = setTimeout(() => {
      request.destroy();
      resolve(false);
    }, stayMs);
    request.on('response', (response) => {
      clearTimeout(leave);
      response.resume().on('end', () => resolve(true));
    });
    request.on('error', () => resolve(false));
  });
}

/** What is there once everything has come to rest. */
async function settled(servers) {
  await delay(2_000);
  const [, worker] = servers.pids;
  process.kill(worker, 'SIGUSR2');
  await delay(1_500); // a heartbeat tells the primary
  const response = await fetch(`http://127.0.0.1:${PORT}/metrics`, {
    headers: { connection: 'close' },
  });
  const text = await response.text();
  const value = (name, labels) => {
    const found = new RegExp(`^${name}\\{${labels}\\} (\\S+)`, 'm').exec(text);
    return Number(found?.[1] ?? 0);
  };
  const task = 'task="OffloadController.fib"';
  const outcome = (name) =>
    value('nestjs_cluster_offload_tasks_total', `${task},outcome="${name}"`);
  return {
    begun: value('nestjs_cluster_offload_wait_seconds_count', task),
    completed: outcome('completed'),
    aborted: outcome('aborted'),
    threadLost: outcome('thread_lost'),
    queue: value('nestjs_cluster_offload_queue_size', 'worker="0"'),
    threads: value('nestjs_cluster_offload_threads', 'worker="0"'),
    heapBytes: value('nestjs_cluster_worker_heap_used_bytes', 'worker="0"'),
    osThreads: readdirSync(`/proc/${worker}/task`).length,
  };
}
