import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { answering } from '../processes.mjs';

const APP = fileURLToPath(new URL('../apps/reload.mjs', import.meta.url));
const PORT = 21_350;
const WORKERS = 2;
const CLIENTS = 16;
const TIMES = 20;

/** Replaced at once, however often: what is measured is what is lost, not the backoff. */
const OPTIONS = { restart: { backoffMs: 10, maxBackoffMs: 10, maxFailures: 1_000 } };

/**
 * What is lost with a socket for each worker: 20 times a worker is killed, then 20 times all are
 * reloaded, under clients that open a new connection for each request and never ask twice. A
 * request may be lost to a kill only if the killed worker had accepted it.
 */
export async function reusePort({ node, adapters, progress }) {
  const results = [];
  for (const adapter of adapters) results.push(await measure({ node, adapter, progress }));
  return results;
}

async function measure({ node, adapter, progress }) {
  const primary = spawn(node, ['--expose-gc', APP], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      ADAPTER: adapter,
      PORT: String(PORT),
      WORKERS: String(WORKERS),
      CANARY_MS: '200',
      OPTIONS: JSON.stringify(OPTIONS),
      CLUSTER_BALANCING: 'reuse-port',
    },
  });
  const exited = once(primary, 'exit');
  try {
    await answering(`http://127.0.0.1:${PORT}/hello`);
    let workers = await readyWorkers();
    const clients = new Clients();
    const kills = { requests: 0, lost: 0, accepted: 0, queued: 0 };
    for (let k = 0; k < TIMES; k += 1) {
      await delay(500);
      const victim = workers[k % WORKERS];
      const { accepted, queued } = await kill(victim.pid);
      await clients.turnOver();
      workers = await readyWorkers((worker) => worker.pid !== victim.pid);
      const lost = clients.takeLost();
      kills.lost += lost.length;
      kills.accepted += lost.filter((clientPort) => accepted.has(clientPort)).length;
      kills.queued += queued;
      progress(
        `${adapter}: kill ${k + 1}/${TIMES}, ${lost.length} lost of ${accepted.size} accepted, ${queued} were queued`,
      );
    }
    kills.requests = clients.requests;
    let lostInReloads = 0;
    let aborted = 0;
    for (let k = 0; k < TIMES; k += 1) {
      primary.send('reload');
      const [result] = await once(primary, 'message');
      if (result.outcome !== 'completed') aborted += 1;
      await clients.turnOver();
      const lost = clients.takeLost().length;
      lostInReloads += lost;
      progress(`${adapter}: reload ${k + 1}/${TIMES} ${result.outcome}, ${lost} lost`);
    }
    await clients.stop();
    return {
      adapter,
      kills: TIMES,
      requests: kills.requests,
      lostToKills: kills.lost,
      ofThemAccepted: kills.accepted,
      queuedAtKills: kills.queued,
      reloads: TIMES,
      aborted,
      requestsInReloads: clients.requests - kills.requests,
      lostInReloads,
    };
  } finally {
    primary.kill('SIGTERM');
    await exited;
  }
}

/** The workers' reports in `/health`, once all are ready and `holds` is true for each of them. */
async function readyWorkers(holds = () => true) {
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${PORT}/health`, {
      headers: { connection: 'close' },
    }).catch(() => undefined); // the request went to the killed worker
    const workers = (await response?.json())?.details.cluster.workers ?? [];
    const ready = workers.filter((worker) => worker.state === 'ready' && holds(worker));
    if (ready.length === WORKERS) return ready;
    await delay(50);
  }
}

/** Stops a process before killing it, so that the connections it has accepted are known exactly. */
async function kill(pid) {
  process.kill(pid, 'SIGSTOP');
  const stands = (thread) =>
    /^\d+ \(.*\) T/s.test(readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8'));
  while (!readdirSync(`/proc/${pid}/task`).every(stands)) await delay(1);
  await delay(20); // some come that it does not accept
  const sockets = socketsOf(pid);
  process.kill(pid, 'SIGKILL');
  const connections = sockets.filter((socket) => !socket.listens);
  return {
    accepted: new Set(connections.map((socket) => socket.clientPort)),
    queued: sockets.reduce((sum, socket) => sum + (socket.listens ? socket.queued : 0), 0),
  };
}

/** The sockets of a process on the port, of /proc/net/tcp. */
function socketsOf(pid) {
  const open = new Set();
  for (const descriptor of readdirSync(`/proc/${pid}/fd`)) {
    const [, inode] =
      /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${descriptor}`)) ?? [];
    if (inode !== undefined) open.add(inode);
  }
  const hex = (text) => Number.parseInt(text, 16);
  return readFileSync('/proc/net/tcp', 'utf8')
    .trim()
    .split('\n')
    .slice(1)
    .map((row) => row.trim().split(/\s+/))
    .filter((fields) => open.has(fields[9]) && hex(fields[1].slice(-4)) === PORT)
    .map((fields) => ({
      clientPort: hex(fields[2].slice(-4)),
      listens: fields[3] === '0A',
      queued: hex(fields[4].split(':')[1]),
    }));
}

/** Clients without pause, half of them for what takes 20 ms. */
class Clients {
  requests = 0;
  #lost = [];
  #underWay = new Set();
  #stopped = false;
  #running;

  constructor() {
    this.#running = Array.from({ length: CLIENTS }, (_, k) =>
      this.#run(k % 2 === 0 ? '/whoami' : '/wait/20'),
    );
  }

  /** Ports of the clients that lost a request since the last call; `undefined` where one was refused. */
  takeLost() {
    return this.#lost.splice(0);
  }

  /** Resolves once every request that is under way now has been answered or lost. */
  async turnOver() {
    await Promise.all(this.#underWay);
  }

  async stop() {
    this.#stopped = true;
    await Promise.all(this.#running);
  }

  async #run(path) {
    while (!this.#stopped) {
      const asked = this.#ask(path);
      this.#underWay.add(asked);
      await asked;
      this.#underWay.delete(asked);
      this.requests += 1;
    }
  }

  #ask(path) {
    return new Promise((resolve) => {
      let clientPort;
      const lose = () => resolve(void this.#lost.push(clientPort));
      const request = http.get(
        { host: '127.0.0.1', port: PORT, path, agent: false },
        (response) => {
          response
            .on('error', lose)
            .on('end', () => (response.statusCode === 200 ? resolve() : lose()));
          response.resume();
        },
      );
      request.on('socket', (socket) => {
        socket.on('connect', () => (clientPort = socket.localPort));
      });
      request.setTimeout(30_000, () => request.destroy(new Error('timeout')));
      request.on('error', lose);
    });
  }
}
