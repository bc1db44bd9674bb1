import { fileURLToPath } from 'node:url';
import { clusterWorkers } from '../process-table.mjs';
import { livePids } from './plain-app.mjs';

const PROGRAM = fileURLToPath(new URL('../../../sample-app/dist/main.js', import.meta.url));

/** A cluster of the sample app: what its primary's log says of it. */
export class SampleCluster {
  #primary;
  #desired;
  #ready = new Set(); // pids of workers

  constructor(group, { node, adapter, workers, port, env }) {
    this.#desired = workers;
    this.#primary = group.spawn(node, [PROGRAM], {
      env: {
        NODE_ENV: 'production',
        CLUSTER_LOG_FORMAT: 'json',
        CLUSTER_LOG_LEVEL: 'debug', // a line for each worker that is ready
        ...env,
        ADAPTER: adapter,
        PORT: String(port),
        CLUSTER_WORKERS: String(workers),
      },
    });
    this.#primary.onLine((line) => this.#hear(line));
  }

  frontPids = () => livePids([this.#primary]);
  workerPids = () => clusterWorkers(this.#primary.pid);

  /** Resolves once as many workers as there should be are ready, and no others. */
  async serves() {
    while (this.#ready.size !== this.#desired) await this.#primary.line(parse);
  }

  /** Resolves when the rolling reload is complete, the old workers included. */
  async reload() {
    const ended = this.#primary.line((line) => {
      const event = parse(line);
      return event?.event === 'reload-ended' ? event : undefined;
    });
    this.#primary.kill('SIGHUP');
    const { outcome, message } = await ended;
    if (outcome !== 'completed') throw this.#primary.error(message);
    await this.serves();
  }

  #hear(line) {
    const { event, pid } = parse(line) ?? {};
    if (event === 'worker-ready') this.#ready.add(pid);
    if (event === 'worker-died' || event === 'worker-stopped') this.#ready.delete(pid);
  }
}

/** An event of the log; undefined where a line is none. */
function parse(line) {
  try {
    return JSON.parse(line);
  } catch {
    return undefined; // Nest's own
  }
}

/** Without a cluster: resolves once the one process listens. */
export async function startStandalone(group, { node, adapter, port, env }) {
  const started = group.spawn(node, [PROGRAM], {
    env: {
      NODE_ENV: 'production',
      CLUSTER_LOG_FORMAT: 'json',
      ...env,
      ADAPTER: adapter,
      PORT: String(port),
      CLUSTER_WORKERS: '0',
    },
  });
  await started.line((line) => (parse(line)?.event === 'listening' ? true : undefined));
  return started;
}
