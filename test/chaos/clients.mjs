import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('clients/client-process.mjs', import.meta.url));

/** How many there are of each kind. */
const CLIENTS = { 'keep-alive': 6, connect: 3, post: 4, offload: 2, websocket: 4, sse: 4 };

/** Far more than anyone reads: memory is bounded. */
const LOSSES_KEPT = 10_000;

/** Strict clients, a process for each kind, and what became of their requests. */
export class Clients {
  /** By client: `{ success, ended }`. */
  counts = {};
  losses = [];
  /** How many there were in all. */
  lost = 0;
  #processes;

  /** @param cluster undefined for a run without clients, because the cluster has failed. */
  constructor(cluster) {
    this.#processes = Object.entries(cluster === undefined ? {} : CLIENTS).map(([kind, count]) => {
      this.counts[kind] = { success: 0, ended: 0 };
      const child = fork(PROGRAM, [kind, count, cluster.port], { detached: true });
      const exited = new Promise((resolve) => child.once('exit', resolve));
      child.on('message', ({ counts, loss }) => {
        if (counts) this.counts[kind] = counts;
        if (!loss) return;
        this.lost += 1;
        if (this.losses.length < LOSSES_KEPT) this.losses.push(loss);
      });
      return { kind, child, exited };
    });
  }

  /** Resolves with the kinds whose process did not end well. */
  async stop() {
    for (const { child } of this.#processes) if (child.connected) child.send('stop');
    const codes = await Promise.all(this.#processes.map(({ exited }) => exited));
    return this.#processes.filter((_each, index) => codes[index] !== 0).map(({ kind }) => kind);
  }

  destroy() {
    for (const { child } of this.#processes) child.kill('SIGKILL');
  }
}
