import type { ClusterStatus } from '../../control/cluster-status.js';
import { formatMegabytes, formatNumber, formatTable } from './table.js';
import { summarize, TOP_COLUMNS, withRates, type WorkerRow } from './workers-table.js';

type SortKey = (row: WorkerRow) => number;

/** The sort orders by their keys. The largest value comes first. Slots begin with the lowest. */
const SORTS: Readonly<Record<string, { readonly title: string; readonly key: SortKey }>> = {
  s: { title: 'slot', key: ({ slot }) => -slot },
  r: { title: 'requests', key: ({ requestsPerSecond }) => requestsPerSecond ?? -1 },
  l: { title: 'event loop', key: ({ eventLoopUtilization }) => eventLoopUtilization ?? -1 },
  m: { title: 'memory', key: ({ residentMemoryBytes }) => residentMemoryBytes ?? -1 },
};

/** The lines that `top` shows: the last status, in the chosen order. */
export class TopView {
  #sort = 's';
  #last: { readonly at: number; readonly status: ClusterStatus } | undefined;
  #rows: readonly WorkerRow[] = [];

  press(key: string): void {
    if (Object.hasOwn(SORTS, key)) this.#sort = key;
  }

  /** @param at when the status was taken, in monotonic ms. */
  lines(status: ClusterStatus, at = performance.now()): readonly string[] {
    const before = this.#last;
    const seconds = before === undefined ? 0 : (at - before.at) / 1_000;
    this.#rows = withRates(status.cluster, before?.status.cluster, seconds);
    this.#last = { at, status };
    return this.again();
  }

  /** The lines of the last status again, e.g. after the order was changed. */
  again(): readonly string[] {
    if (this.#last === undefined) return ['waiting for the status'];
    const { cluster, primary } = this.#last.status;
    const { title, key } = SORTS[this.#sort]!;
    const total = this.#rows.reduce(
      (sum, { requestsPerSecond }) => sum + (requestsPerSecond ?? 0),
      0,
    );
    const own =
      primary === null
        ? ''
        : `, primary pid ${primary.pid} ${formatMegabytes(primary.residentMemoryBytes)} MB`;
    return [
      summarize(cluster),
      `${formatNumber(total)} req/s${own}, sorted by ${title}`,
      ...formatTable(
        TOP_COLUMNS,
        this.#rows.toSorted((a, b) => key(b) - key(a)),
      ),
    ];
  }
}
