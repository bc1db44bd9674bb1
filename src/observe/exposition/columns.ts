import type { Column, Row } from './metric-family.js';

const INFINITY = 'le="+Inf"';

/** Whether two families have the same columns, in the same order. */
export function sameColumns(a: readonly Column[], b: readonly Column[]): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  return a.every((column, i) => isSame(column, b[i]!));
}

/** The columns of both families, with the bounds of buckets in ascending order. */
export function unionColumns(a: readonly Column[], b: readonly Column[]): Column[] {
  const all = [...a, ...b.filter((column) => indexOf(column, a) === -1)];
  const bounds = all.filter(isBucket).toSorted((x, y) => boundOf(x) - boundOf(y));
  return [...bounds, ...all.filter((column) => !isBucket(column))];
}

/**
 * Converts a row to other columns. A bucket that the row does not have gets the count of the next
 * lower bucket, so counts stay cumulative. Other columns that the row does not have are `null`.
 */
export function alignRow(row: Row, from: readonly Column[], to: readonly Column[]): Row {
  let below = 0;
  return to.map((column) => {
    const at = indexOf(column, from);
    const value = at === -1 ? null : (row[at] ?? null);
    if (!isBucket(column)) return value;
    return (below = value ?? below);
  });
}

/** The index of a column in `columns`, or -1. */
export function indexOf(column: Column, columns: readonly Column[]): number {
  return columns.findIndex((each) => isSame(each, column));
}

function isSame(a: Column, b: Column): boolean {
  return a.suffix === b.suffix && a.label === b.label;
}

function isBucket({ suffix }: Column): boolean {
  return suffix === '_bucket';
}

function boundOf({ label }: Column): number {
  return label === INFINITY ? Infinity : Number(label.slice('le="'.length, -1));
}
