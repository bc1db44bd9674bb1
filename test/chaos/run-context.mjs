import http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 50;
/** Everything that is awaited is bounded: by 20 s, or where the machine is slow by so many boots. */
const LEAST_LIMIT_MS = 20_000;
const LIMIT_BOOTS = 6;
const FIRST_LIMIT_MS = 60_000;
/** A worker whose last heartbeat is older than this is not healthy. */
const FRESH_MS = 2_000;

/** The actions that faults may use. Records the data that the verdict needs. */
export class RunContext {
  /** Failed expectations, `{ at, what }`. */
  failures = [];
  #limitMs = FIRST_LIMIT_MS;
  #expected = new Set();
  #undos = [];

  constructor(cluster, releases) {
    Object.assign(this, { cluster, releases });
  }

  failed(what) {
    this.failures.push({ at: Date.now(), what });
  }

  /** This worker may die, and may lose nothing. */
  expect(pid) {
    this.#expected.add(pid);
  }

  /** Allows all workers but the given ones to die: new workers may be dead or about to die. */
  expectNewcomersDead(workers) {
    const pids = [...this.cluster.deaths.map(({ pid }) => pid), ...this.cluster.workerPids];
    for (const pid of pids) if (!workers.includes(pid)) this.expect(pid);
  }

  mayDie(pid) {
    return this.#expected.has(pid) || this.cluster.mayLose(pid);
  }

  /** Workers by a number 0..1, and those that follow. */
  pickWorkers(share, count) {
    const pids = this.cluster.workerPids;
    const first = Math.floor(share * pids.length);
    return pids.map((_pid, index) => pids[(first + index) % pids.length]).slice(0, count);
  }

  /** A connection to a worker, by whose pid it is known who will get the next request. */
  async meetWorker() {
    for (;;) {
      const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
      const { pid, last } = await this.cluster.app('/whoami', agent);
      const ask = (path) => this.cluster.app(path, agent).finally(() => agent.destroy());
      // Else the next request is to go elsewhere.
      if (!last) return { pid, ask };
      agent.destroy();
    }
  }

  /** Undone at the latest when the fault, or the run, ends. */
  undoLater(undo) {
    this.#undos.push(undo);
  }

  undoNow() {
    while (this.#undos.length > 0) this.#undos.pop()();
  }

  /** The primary's report, with `settled`: whether all desired workers are ready and healthy. */
  async report() {
    const report = await this.cluster.report();
    if (report === undefined) return { settled: false };
    const { desired, ready, workers } = report;
    // A worker's end is seen here a little before the primary learns of it.
    const alive = this.cluster.workerPids;
    const well = workers.filter(
      ({ pid, state, heartbeatAgeMs }) =>
        state === 'ready' && heartbeatAgeMs < FRESH_MS && alive.includes(pid),
    );
    const settled = ready === desired && workers.length === desired && well.length === desired;
    return { ...report, settled };
  }

  /** Resolves once the cluster is up; how long it took bounds everything that comes. */
  async started() {
    const began = Date.now();
    await this.until('the first workers are ready', ({ settled }) => settled);
    this.#limitMs = Math.max(LEAST_LIMIT_MS, LIMIT_BOOTS * (Date.now() - began));
  }

  /** Resolves once a report satisfies `holds`. */
  until(what, holds) {
    return this.eventually(what, async () => holds(await this.report()));
  }

  async eventually(what, holds) {
    const deadline = Date.now() + this.#limitMs;
    while (!(await holds())) {
      if (Date.now() > deadline) throw new Error(`not within ${this.#limitMs} ms: ${what}`);
      await delay(POLL_MS);
    }
  }

  /** Resolves once these workers have died. */
  died(pids) {
    return this.eventually(`the end of worker ${pids}`, () => {
      this.cluster.look();
      return !pids.some((pid) => this.cluster.workerPids.includes(pid));
    });
  }

  /** A counter, now. */
  async counter(series) {
    const { body } = await this.cluster.admin('/metrics');
    return Number(body.split(`${series} `)[1]?.split('\n')[0] ?? 0);
  }
}
