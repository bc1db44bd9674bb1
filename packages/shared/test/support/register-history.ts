/** One client's operation on one key. `begin` and `end` come from one clock for all clients. */
export interface Operation {
  readonly kind: 'read' | 'write';
  readonly key: string;
  readonly begin: number;
  readonly end: number;
  /** Different for each write. `null` means that the key has no value: a delete writes `null`. */
  readonly value: string | null;
  /** The client got no answer. An unsure write may take effect later or never. */
  readonly unsure?: boolean | undefined;
}

/**
 * The key has this value from `from` to `to`. If `from` is later than `to`, the key has it at some
 * moment between the two.
 */
interface Cluster {
  readonly key: string;
  readonly value: string | null;
  from: number;
  to: number;
}

/**
 * Finds the violations in a history of registers. A read violates if it returns neither the last
 * value written before it nor a value written during it. A value violates if it is read again after
 * a later value was read. Gibbons and Korach define the zones in "Testing shared memories" (1997).
 * For values the check is exact. Deletes cannot be told apart, so the check misses some inversions
 * between two deletes. It reports no false violations.
 */
export function violationsOf(history: readonly Operation[]): string[] {
  const byKey = new Map<string, Operation[]>();
  for (const each of history) {
    const known = byKey.get(each.key);
    if (known === undefined) byKey.set(each.key, [each]);
    else known.push(each);
  }
  return [...byKey.values()].flatMap(violationsOfKey);
}

function violationsOfKey(operations: readonly Operation[]): string[] {
  const reads = operations.filter(({ kind, unsure }) => kind === 'read' && !unsure);
  const writes = operations.filter(({ kind }) => kind === 'write').map(possible);
  const byValue = new Map(writes.map((write) => [write.value, write]));
  const deletes = writes.filter(({ value }) => value === null);
  const latestBegin = runningMaximum(writes, 'end', 'begin');
  const latestValueBegin = runningMaximum(
    writes.filter(({ value }) => value !== null),
    'end',
    'begin',
  );
  const latestDeleteEnd = runningMaximum(deletes, 'begin', 'end');
  const violations: string[] = [];
  for (const read of reads) {
    if (read.value === null) {
      // The delete that is the best for it, or the beginning.
      if (latestValueBegin(read.begin) > latestDeleteEnd(read.end))
        violations.push(tell('lost', read));
      continue;
    }
    const write = byValue.get(read.value);
    if (write === undefined || write.begin >= read.end) violations.push(tell('unwritten', read));
    else if (latestBegin(read.begin) > write.end) violations.push(tell('stale', read));
  }
  const clusters = clustersOf(reads, byValue);
  const zones = clusters
    .filter(({ from, to }) => from < to)
    .sort((one, other) => one.from - other.from);
  zones.forEach((zone, index) => {
    const next = zones[index + 1];
    if (next !== undefined && next.from < zone.to) {
      violations.push(`${zone.value} and ${next.value} of ${zone.key} were seen in turns`);
    }
  });
  const moments = clusters.filter(({ from, to }) => from >= to);
  const absences = [...reads, ...deletes].filter(({ value }) => value === null);
  for (const { value, from: end, to: begin } of [...moments, ...absences.map(momentOf)]) {
    const zone = lastBefore(zones, begin);
    if (zone !== undefined && end < zone.to) {
      violations.push(`${value} of ${zone.key} was there within ${zone.value}, by ${begin}`);
    }
  }
  return violations;
}

/** An unsure write may take effect long after the client has given up. */
function possible(write: Operation): Operation {
  return write.unsure === true ? { ...write, end: Infinity } : write;
}

/** For each value, the earliest end and the latest begin among its write and its reads. */
function clustersOf(
  reads: readonly Operation[],
  byValue: ReadonlyMap<string | null, Operation>,
): Cluster[] {
  const clusters = new Map<string | null, Cluster>();
  for (const [value, write] of byValue) clusters.set(value, momentOf(write));
  clusters.delete(null);
  for (const read of reads) {
    const known = clusters.get(read.value);
    if (known === undefined) continue;
    known.from = Math.min(known.from, read.end);
    known.to = Math.max(known.to, read.begin);
  }
  return [...clusters.values()];
}

function momentOf({ key, value, begin, end }: Operation): Cluster {
  return { key, value, from: end, to: begin };
}

/** @returns the largest `of` among those whose `by` is below what is asked for. */
function runningMaximum(
  operations: readonly Operation[],
  by: 'begin' | 'end',
  of: 'begin' | 'end',
): (below: number) => number {
  const sorted = operations.map((each) => ({ from: each[by], largest: each[of] }));
  sorted.sort((a, b) => a.from - b.from);
  let largest = -Infinity;
  for (const each of sorted) each.largest = largest = Math.max(largest, each.largest);
  return (below) => lastBefore(sorted, below)?.largest ?? -Infinity;
}

function lastBefore<T extends { readonly from: number }>(
  sorted: readonly T[],
  below: number,
): T | undefined {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]!.from < below) low = middle + 1;
    else high = middle;
  }
  return sorted[low - 1];
}

function tell(what: string, { kind, key, value, begin, end }: Operation): string {
  return `${what}: ${kind} of ${key} = ${value} from ${begin} to ${end}`;
}
