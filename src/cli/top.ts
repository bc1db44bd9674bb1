import { setTimeout as delay } from 'node:timers/promises';
import { isAlive } from '../contract/files/sockets.js';
import type { ClusterReport, ClusterStatus } from '../control/cluster-status.js';
import { type ControlClient, SILENCE, UnreachableError } from './control-client.js';
import { figure, formatSeconds, formatTable, megabytes, printJson, printLines } from './output.js';

type WorkerReport = ClusterReport['workers'][number];

const POLL_MS = 1_000;
const SILENT_AFTER_MS = 3_000; // a ping a second, unanswered for 2 s

/** The state of the whole cluster, in one line. */
export function summarize({ status, ready, desired, generation, reason }: ClusterReport): string {
  const why = reason === undefined ? '' : `: ${reason}`;
  return `${status}, ${ready}/${desired} workers ready, generation ${generation}${why}`;
}

export function workersTable(
  workers: readonly WorkerReport[],
  requestRates?: ReadonlyMap<number, number>,
): string[] {
  const columns: Readonly<Record<string, (worker: WorkerReport) => string>> = {
    slot: ({ slot }) => figure(slot),
    pid: ({ pid }) => figure(pid),
    gen: ({ generation }) => figure(generation),
    state: ({ state, heartbeatAgeMs }) =>
      state === 'ready' && (heartbeatAgeMs ?? 0) > SILENT_AFTER_MS ? 'no answer' : state,
    ...(requestRates && { 'req/s': ({ slot }) => figure(requestRates.get(slot) ?? null) }),
    'in flight': ({ requestsInFlight }) => figure(requestsInFlight),
    conns: ({ openConnections }) => figure(openConnections),
    loop: ({ eventLoopUtilization }) => figure(eventLoopUtilization, 2),
    'delay ms': ({ eventLoopDelayP99Ms }) => figure(eventLoopDelayP99Ms),
    'RSS MB': ({ residentMemoryBytes }) => megabytes(residentMemoryBytes),
    'heap MB': ({ heapUsedBytes }) => megabytes(heapUsedBytes),
    up: ({ uptimeSeconds }) => formatSeconds(uptimeSeconds),
    restarts: ({ restarts }) => figure(restarts),
    'last exit': ({ lastExit }) => lastExit?.cause ?? '-',
  };
  return formatTable(
    Object.keys(columns),
    workers.map((worker) => Object.values(columns).map((cell) => cell(worker))),
  );
}

/** Shows the status once a second until the user quits or the cluster ends. @throws UnreachableError */
export async function top(client: ControlClient, json: boolean): Promise<never> {
  process.stdout.once('error', () => process.exit()); // the reader of the output has exited
  const view = new TopView();
  let pid: number | undefined;
  for (;;) {
    try {
      const status = await client.status();
      pid = status.pid;
      if (json) printJson(status);
      else if (process.stdout.isTTY) draw(view.linesOf(status));
      else printLines([...view.linesOf(status), '']);
    } catch (error) {
      if (!(error instanceof UnreachableError) || pid === undefined) throw error;
      if (!isAlive(pid)) throw new UnreachableError(client.label, 'its primary has exited');
      process.stderr.write(`${SILENCE}\n`);
    }
    await delay(POLL_MS);
  }
}

/** Formats each status as lines, with the request rates since the previous status. */
class TopView {
  /** The last request count of each slot. A slot may have two processes. */
  #requests: ReadonlyMap<number, number> = new Map();
  #at = 0;

  linesOf({ cluster, primary }: ClusterStatus): readonly string[] {
    const at = performance.now();
    const seconds = (at - this.#at) / 1_000;
    const requests = new Map(cluster.workers.map((worker) => [worker.slot, worker.requestsTotal]));
    const rates = new Map(
      [...requests].flatMap(([slot, total]) => {
        const before = this.#requests.get(slot);
        return before === undefined ? [] : [[slot, Math.max(0, (total - before) / seconds)]];
      }),
    );
    this.#requests = requests;
    this.#at = at;
    const total = [...rates.values()].reduce((sum, rate) => sum + rate, 0);
    const memory = megabytes(primary?.residentMemoryBytes ?? null);
    const own = primary === null ? '' : `, primary pid ${primary.pid} ${memory} MB`;
    return [
      summarize(cluster),
      `${figure(total)} req/s${own}`,
      ...workersTable(cluster.workers, rates),
    ];
  }
}

const CSI = '\u001b[';

/** Redraws the screen in place, truncated to the size of the terminal. */
function draw(lines: readonly string[]): void {
  // Some terminals report a size of 0.
  const columns = process.stdout.columns || 80;
  const rows = process.stdout.rows || 24;
  const fit = lines.slice(0, rows - 1).map((line) => `${line.slice(0, columns)}${CSI}K\n`);
  process.stdout.write(`${CSI}H${fit.join('')}${CSI}J`);
}
