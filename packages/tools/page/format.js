// Numbers and times as people read them. `null` is unknown, and shown as a dash.

export const NONE = '–';

export function count(value) {
  if (value === null || value === undefined) return NONE;
  if (value >= 10_000) return `${Number((value / 1_000).toPrecision(3))}k`;
  return value >= 10 || Number.isInteger(value) ? String(Math.round(value)) : value.toFixed(1);
}

export function ms(value) {
  if (value === null || value === undefined) return NONE;
  if (value >= 10_000) return `${(value / 1_000).toFixed(1)} s`;
  return `${value >= 100 || Number.isInteger(value) ? Math.round(value) : value.toFixed(1)} ms`;
}

export function percent(value) {
  return value === null || value === undefined ? NONE : `${Math.round(value * 100)} %`;
}

export function bytes(value) {
  if (value === null || value === undefined) return NONE;
  const mib = value / 2 ** 20;
  return mib >= 1_024 ? `${(mib / 1_024).toFixed(1)} GB` : `${Math.round(mib)} MB`;
}

/** An age in its two largest units at most. */
export function age(seconds) {
  if (seconds === null || seconds === undefined) return NONE;
  const s = Math.floor(seconds);
  if (s < 60) return `${s} s`;
  if (s < 3_600) return `${Math.floor(s / 60)} min`;
  if (s < 86_400) return `${Math.floor(s / 3_600)} h ${Math.floor((s % 3_600) / 60)} min`;
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3_600)} h`;
}

/** The time of day, in the reader's time zone. */
export function time(at) {
  return new Date(at).toLocaleTimeString('en-GB');
}

export function minutes(seconds) {
  return new Date(seconds * 1_000).toLocaleTimeString('en-GB', {
    hour: '2-digit',
    minute: '2-digit',
  });
}
