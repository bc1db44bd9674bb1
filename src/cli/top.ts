import { setTimeout as delay } from 'node:timers/promises';
import { isAlive } from '../contract/files/sockets.js';
import type { ClusterReport, ClusterStatus } from '../control/cluster-status.js';
import { type ControlClient, SILENCE, UnreachableError } from './control-client.js';
import { figure, formatSeconds, formatTable, megabytes, printJson, printLines } from './output.js';

type WorkerReport = ClusterReport['workers'][number];

const POLL_MS = 1_000;

/** The state of the whole cluster, in one line. */
export function summarize({ status, ready, desired, generation, reason }: ClusterReport): string {
  const why = reason === undefined ? '' : `: ${reason}`;
  return `${status}, ${ready}/${desired} workers ready, generation ${generation}${why}`;
}

/** The table of workers. */
export function workersTable(
  workers: readonly WorkerReport[],
  requestRates?: ReadonlyMap<number, number>,
): string[] {
  const columns: Readonly<Record<string, (worker: WorkerReport) => string>> = {
    slot: ({ slot }) => figure(slot),
    pid: ({ pid }) => figure(pid),
    gen: ({ generation }) => figure(generation),
    state: ({ state }) => state,
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
  const cells = Object.values(columns);
  return formatTable(
    Object.keys(columns),
    workers.map((worker) => cells.map((cell) => cell(worker))),
  );
}

/** Shows the status once a second until the user or the cluster ends. @throws UnreachableError */
export async function top(client: ControlClient, json: boolean): Promise<void> {
  process.stdout.once('error', () => process.exit()); // the reader of the output has ended
  const view = new TopView();
  const warn = (): void => void process.stderr.write(`${SILENCE}\n`);
  if (json) return poll(client, printJson, warn);
  if (!process.stdout.isTTY) {
    const show = (status: ClusterStatus) => printLines([...view.update(status).lines, '']);
    return poll(client, show, warn);
  }
  let screen: Screen | undefined;
  const onKey = (key: string): void => {
    view.sortBy(key);
    screen?.draw(view.lines);
  };
  const draw = (status: ClusterStatus): void => {
    // Created with the first status, so that an error before it does not change the terminal.
    screen ??= new Screen(onKey);
    screen.draw(view.update(status).lines);
  };
  try {
    await poll(client, draw, () => screen?.draw([SILENCE, ...view.lines.slice(1)]));
  } finally {
    screen?.leave();
  }
}

/** Asks for the status once a second. @throws UnreachableError once the primary has ended. */
async function poll(
  client: ControlClient,
  show: (status: ClusterStatus) => void,
  silent: () => void,
): Promise<never> {
  let pid: number | undefined;
  for (;;) {
    try {
      const status = await client.status();
      pid = status.pid;
      show(status);
    } catch (error) {
      if (!(error instanceof UnreachableError) || pid === undefined) throw error;
      if (!isAlive(pid)) throw new UnreachableError(client.label, 'it has ended');
      silent();
    }
    await delay(POLL_MS);
  }
}

type SortKey = (worker: WorkerReport, rates: ReadonlyMap<number, number>) => number;

/** The sort orders by their keys. The largest value comes first. Slots begin with the lowest. */
const SORTS: Readonly<Record<string, { readonly title: string; readonly key: SortKey }>> = {
  s: { title: 'slot', key: ({ slot }) => -slot },
  r: { title: 'requests', key: ({ slot }, rates) => rates.get(slot) ?? -1 },
  l: { title: 'event loop', key: ({ eventLoopUtilization }) => eventLoopUtilization ?? -1 },
  m: { title: 'memory', key: ({ residentMemoryBytes }) => residentMemoryBytes ?? -1 },
};

/** The last status as lines, in the chosen order. */
class TopView {
  #sort = SORTS['s']!;
  #status: ClusterStatus | undefined;
  #at = 0;
  /** Responses per second by slot. The counter belongs to the slot, which may have two processes. */
  #rates: ReadonlyMap<number, number> = new Map();

  sortBy(key: string): void {
    if (Object.hasOwn(SORTS, key)) this.#sort = SORTS[key]!;
  }

  update(status: ClusterStatus): this {
    const at = performance.now();
    const before = new Map(
      this.#status?.cluster.workers.map(({ slot, requestsTotal }) => [slot, requestsTotal]),
    );
    const seconds = (at - this.#at) / 1_000;
    this.#rates = new Map(
      status.cluster.workers
        .filter(({ slot }) => before.has(slot))
        .map(({ slot, requestsTotal }) => [
          slot,
          Math.max(0, (requestsTotal - before.get(slot)!) / seconds),
        ]),
    );
    this.#status = status;
    this.#at = at;
    return this;
  }

  get lines(): readonly string[] {
    if (this.#status === undefined) return [];
    const { cluster, primary } = this.#status;
    const { title, key } = this.#sort;
    const total = [...this.#rates.values()].reduce((sum, rate) => sum + rate, 0);
    const memory = megabytes(primary?.residentMemoryBytes ?? null);
    const own = primary === null ? '' : `, primary pid ${primary.pid} ${memory} MB`;
    const sorted = cluster.workers.toSorted((a, b) => key(b, this.#rates) - key(a, this.#rates));
    return [
      summarize(cluster),
      `${figure(total)} req/s${own}, sorted by ${title}`,
      ...workersTable(sorted, this.#rates),
    ];
  }
}

const CSI = '\u001b[';

/** Switches to the terminal's alternate screen and hides the cursor, and undoes both. */
const ENTER = `${CSI}?1049h${CSI}?25l`;
const LEAVE = `${CSI}?25h${CSI}?1049l`;

const CTRL_C = '\u0003';

/** Draws on the whole terminal, and restores the terminal at the end. */
class Screen {
  /** @param onKey is called for each key. The keys q and Ctrl-C end the process instead. */
  constructor(onKey: (key: string) => void) {
    process.stdout.write(ENTER);
    const end = (): void => {
      this.leave();
      process.exit(0);
    };
    // Without these listeners a signal would end the process and leave the terminal as it is.
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, end);
    if (!process.stdin.isTTY) return;
    process.stdin.setRawMode(true).setEncoding('utf8');
    process.stdin.on('data', (key: string) => ('q' === key || key === CTRL_C ? end() : onKey(key)));
  }

  /** Draws the lines. Leaves out lines and characters that do not fit the terminal. */
  draw(lines: readonly string[]): void {
    // Some terminals report a size of 0.
    const columns = process.stdout.columns || 80;
    const rows = process.stdout.rows || 24;
    const fit = lines.slice(0, rows).map((line) => `${line.slice(0, columns)}${CSI}K`);
    process.stdout.write(`${CSI}H${fit.join('\r\n')}${CSI}J`);
  }

  leave(): void {
    if (process.stdin.isTTY) process.stdin.setRawMode(false);
    process.stdout.write(LEAVE);
  }
}
