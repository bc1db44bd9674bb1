/** Stands for a value that is not there. */
export const NOTHING = '–';

const WHOLE = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const ROUNDED = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3 });

/** Three significant digits, no more than two decimals from 0.1 on: 10,400, 448, 22.3, 0.40, 0.0123. */
export function measured(value) {
  const size = Math.abs(value);
  if (size < 0.0995 || size >= 999.5) return ROUNDED.format(value);
  if (size >= 99.95) return value.toFixed(0);
  return value.toFixed(size >= 9.995 ? 1 : 2);
}

/** A count, or a rate of many: whole, with separators of thousands. */
export function counted(value) {
  return WHOLE.format(value);
}

/** A rate: small ones keep their digits. */
export function rate(value) {
  return Math.abs(value) < 100 ? measured(value) : counted(value);
}

export function megabytes(bytes) {
  return measured(bytes / 1e6);
}

export function percent(share) {
  return measured(share * 100);
}

/** The difference that a comparison found: "+8.1 %", or in words if it found none. */
export function difference(share) {
  if (share === 0) return 'no difference';
  return `${share > 0 ? '+' : '-'}${measured(Math.abs(share) * 100)} %`;
}

export function yesOrNo(value) {
  return value ? 'yes' : 'no';
}

/** Errors by kind, most frequent first: "timeout 3, reset 1", or "0". */
export function errorsByKind(errors) {
  const kinds = Object.entries(errors).filter(([, count]) => count > 0);
  if (kinds.length === 0) return '0';
  return kinds
    .toSorted(([a, m], [b, n]) => n - m || (a < b ? -1 : 1))
    .map(([kind, count]) => `${kind} ${counted(count)}`)
    .join(', ');
}
