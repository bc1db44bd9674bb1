import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Machines } from '../machines.mjs';
import { median } from '../statistics.mjs';

const path = (name) => fileURLToPath(new URL(`../${name}.mjs`, import.meta.url));
const [PORT, REDIS] = [21_450, 21_460];
/** Numbers of the machines: one has Redis and the clients, one the web server, two a consumer. */
const [HUB, WEB, ...CONSUMERS] = [0, 1, 2, 3];
/** Loops that a call computes: about 35 ms of CPU time of a consumer on Node 24. */
const BURN_LOOPS = '5e6';
const IN_FLIGHT = 8;
/** Calls of the run in which a consumer is killed. */
const CALLS = 400;
const KILL_AFTER_MS = 500;
const START_MS = 60_000;

/** The same work in three ways; each consumer has one thread or process that computes. */
const SYSTEMS = [
  {
    name: 'nestjs-cluster',
    app: 'apps/queues',
    web: { CLUSTER_CONSUME: 'false' },
    consumer: { CLUSTER_CONSUME: 'large', CLUSTER_THREADS: '1' },
  },
  {
    name: 'BullMQ, sandboxed processor',
    app: 'apps/plain-bullmq',
    web: { ROLE: 'web' },
    consumer: { ROLE: 'consumer', CONCURRENCY: '1' },
  },
  {
    name: "Nest's Redis transport",
    app: 'apps/redis-transport',
    web: { ROLE: 'web' },
    consumer: { ROLE: 'consumer' },
  },
];

/**
 * Calls that other machines run: how many for a second of CPU, how long they take, and how many are
 * lost when one of two consumers is killed. All systems run at once and are measured in turn.
 * Figures are medians of the rounds.
 */
export async function distributed({ node, seconds, rounds, progress }) {
  const directory = mkdtempSync(join(tmpdir(), 'bench-'));
  const machines = new Machines(2 + CONSUMERS.length);
  try {
    progress(
      machines.lacks === undefined
        ? 'each cluster has a network namespace of its own'
        : `without network namespaces, all at 127.0.0.1: ${machines.lacks}`,
    );
    startRedis(machines, directory);
    const fleets = SYSTEMS.map((system, i) => new Fleet(machines, system, node, PORT + 10 * i));
    for (const fleet of fleets) await fleet.ready();

    const runs = new Map(fleets.map((fleet) => [fleet, []]));
    // Rounds below 1 are for V8.
    for (let round = 0; round <= rounds; round += 1) {
      // Each is first, in the middle and last in turn.
      for (const fleet of fleets) {
        const run = await fleet.load(seconds);
        progress(`round ${round}/${rounds}: ${fleet.name} ${JSON.stringify(run)}`);
        if (round > 0) runs.get(fleet).push(run);
      }
      fleets.push(fleets.shift());
    }
    const rows = [];
    for (const [fleet, its] of runs) {
      rows.push({ system: fleet.name, ...mediansOf(its), ...(await fleet.loseConsumer()) });
    }
    return rows;
  } finally {
    await machines.close();
    rmSync(directory, { recursive: true });
  }
}

/** Medians of each figure. The best rounds would be from a different time for each system. */
function mediansOf(runs) {
  const figures = Object.keys(runs[0]);
  return Object.fromEntries(figures.map((key) => [key, median(runs.map((run) => run[key]))]));
}

function startRedis(machines, directory) {
  const bind = machines.lacks === undefined ? 'bind 0.0.0.0\nprotected-mode no' : 'bind 127.0.0.1';
  const configuration = join(directory, 'redis.conf');
  writeFileSync(configuration, `port ${REDIS}\n${bind}\nsave ""\nappendonly no\n`);
  machines.start(HUB, 'redis-server', [configuration]);
}

/** One system: a web server and two consumers, each on a machine of its own. */
class Fleet {
  #machines;
  #node;
  #url;
  #consumers;

  constructor(machines, { name, app, web, consumer }, node, port) {
    this.name = name;
    this.#machines = machines;
    this.#node = node;
    this.#url = `http://${machines.address(HUB, WEB)}:${port + WEB}/burn`;
    const start = (machine, env) =>
      machines.start(machine, node, [path(app)], {
        ...env,
        CLUSTER_LOG_FORMAT: 'json',
        BURN_LOOPS,
        REDIS: String(REDIS),
        REDIS_HOST: machines.address(machine, HUB),
        HOST: machines.address(HUB, machine),
        // Without network namespaces the machines share an address and need different ports.
        PORT: String(port + machine),
      });
    start(WEB, web);
    this.#consumers = CONSUMERS.map((machine) => start(machine, consumer));
  }

  async ready() {
    for (const deadline = performance.now() + START_MS; ;) {
      if ((await this.#ask('calls=32')).answered === 32) return;
      if (performance.now() > deadline) throw new Error(`${this.name}: ${this.#url} is silent`);
      await delay(200);
    }
  }

  async load(seconds) {
    const before = this.#machines.cpuSeconds;
    const { answered, seconds: took, p50Ms, p99Ms } = await this.#ask(`seconds=${seconds}`);
    const cpuSeconds = this.#machines.cpuSeconds - before;
    return {
      callsPerCpuSecond: answered / cpuSeconds,
      callsPerSecond: answered / took,
      p50Ms,
      p99Ms,
    };
  }

  async loseConsumer() {
    const asked = this.#ask(`calls=${CALLS}`);
    await delay(KILL_AFTER_MS);
    this.#machines.kill(this.#consumers[0]);
    const { refused, silent, longestMs } = await asked;
    return { refused, silent, longestMs };
  }

  async #ask(until) {
    const args = [path('load/ask-fleet'), this.#url, String(IN_FLIGHT), until];
    return JSON.parse(await this.#machines.output(HUB, this.#node, args));
  }
}
