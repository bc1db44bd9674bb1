import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cpuBetween, readCpuTime } from '../../cpu-time.mjs';
import { answering } from '../../load/ask.mjs';
import { ProcessGroup } from '../../process-group.mjs';

const APP = fileURLToPath(new URL('../../apps/shared.mjs', import.meta.url));
const WITNESS_APP = fileURLToPath(new URL('../../apps/witness.mjs', import.meta.url));
const PORT = 21_500;
const WITNESS = PORT + 97;
const REDIS = PORT + 98;
const PRIMARY = PORT + 99;

/** A cluster that uses the hub and Redis, the Redis server, and a process that does nothing. */
export class SharedCluster {
  #servers = new ProcessGroup();
  #directory = mkdtempSync(join(tmpdir(), 'bench-hub-'));
  #agent = new http.Agent({ keepAlive: true });

  constructor({ node, workers, parts, env = {} }) {
    this.ports = Array.from({ length: workers }, (_, slot) => PORT + slot);
    if (parts.length > 0) {
      const configuration = join(this.#directory, 'redis.conf');
      writeFileSync(configuration, `port ${REDIS}\nbind 127.0.0.1\nsave ""\nappendonly no\n`);
      this.#servers.spawn('redis-server', [configuration]);
      this.#servers.spawn(node, [WITNESS_APP], { env: { PORT: String(WITNESS) } });
    }
    this.#servers.spawn(node, [APP], {
      env: {
        PORT: String(PORT),
        WORKERS: String(workers),
        REDIS: String(REDIS),
        PARTS: parts.join(','),
        NODE_ENV: 'production',
        CLUSTER_LOG_FORMAT: 'json',
        XDG_RUNTIME_DIR: this.#directory,
        ...env,
      },
    });
  }

  /** Runs `use` with a cluster that is ready, and ends it. */
  static async with(options, use) {
    const cluster = new SharedCluster(options);
    try {
      for (const port of cluster.ports) {
        await answering(`http://127.0.0.1:${port}/run?what=nothing&ms=1&at=1`, 1, 30_000);
      }
      return await use(cluster);
    } finally {
      await cluster.#stop();
    }
  }

  /** In the order in which they were started: Redis, where there is one, is first. */
  get pids() {
    return this.#servers.pids();
  }

  /** The primary is the one whose children are workers. */
  get primaryPid() {
    const { pids } = this;
    return pids.find((pid) => pids.some((other) => parentOf(other) === pid));
  }

  /** Runs a function and adds up the seconds of CPU that all processes use until it ends. */
  async cpuWhile(run) {
    const read = () => new Map(this.pids.map((pid) => [pid, readCpuTime(pid)]));
    const before = read();
    const result = await run();
    let seconds = 0;
    for (const [pid, after] of read()) seconds += cpuBetween(before.get(pid), after);
    return { result, seconds };
  }

  /** Runs an operation in the first `workers`; see the app. */
  run(what, { ms, at, workers = this.ports.length }) {
    const query = new URLSearchParams({ what, ms: String(ms), at: String(at) });
    return Promise.all(
      this.ports.slice(0, workers).map((port) => this.#get(port, `/run?${query.toString()}`)),
    );
  }

  /** How late the event loops of the primary and of the witness were, p99 since they were asked last. */
  async delays() {
    const [primary, witness] = await Promise.all(
      [PRIMARY, WITNESS].map((port) => this.#get(port, '/')),
    );
    return { primaryP99Ms: primary.p99Ms, witnessP99Ms: witness.p99Ms };
  }

  #get(port, path) {
    return new Promise((resolve, reject) => {
      http
        .get({ host: '127.0.0.1', port, path, agent: this.#agent }, (response) => {
          let text = '';
          response.setEncoding('utf8').on('data', (chunk) => (text += chunk));
          response.on('end', () => {
            if (response.statusCode === 200) resolve(JSON.parse(text));
            else reject(new Error(`${path} answered ${response.statusCode}: ${text}`));
          });
        })
        .on('error', reject);
    });
  }

  async #stop() {
    this.#agent.destroy();
    await this.#servers.stop();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** Resident memory and threads of a process. */
export function describeProcess(pid) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const number = (name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)[1]);
  return { rssBytes: number('VmRSS') * 1_024, threads: number('Threads') };
}

function parentOf(pid) {
  try {
    const [, parent] = /^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return Number(parent);
  } catch {
    return undefined; // the process has ended
  }
}
