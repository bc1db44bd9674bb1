/** What `npm run bench` writes to results/<scope>.json, as far as the report reads it. */
export interface Result {
  scope: string;
  title: string;
  about?: string;
  /** How to repeat it; nothing where a program of others, which is not here, is needed. */
  command?: string;
  date?: string;
  parameters?: {
    rounds?: number;
    [name: string]: string | number | (string | number)[] | undefined;
  };
  /** Commit that was measured. */
  commit?: string;
  /** Of the ratios, where it is not nestjs-cluster as it is by default. */
  baseline?: string;
  /** It was measured although others used the machine: not for the report. */
  forced?: boolean;
  machine?: { cpu?: string; cores?: number; memoryBytes?: number; kernel?: string };
  versions?: Record<string, string>;
  rows: Row[];
  chart?: Chart;
  /** Instead of a chart: what was recorded, part by part, in the order of time. */
  timeline?: { title: string; parts: { samples: Sample[] }[] };
  found?: { article: string; said: string; measured: string }[];
}

/** A minute of a soak. */
export interface Sample {
  minute: number;
  primary: Held;
  workers: Held[];
  /** Of a kept connection; null if nothing was answered. */
  p50Ms: number | null;
  p99Ms: number | null;
  maxMs: number | null;
}

/** What a process holds. */
export interface Held {
  descriptors?: number;
  residentBytes?: number;
  heapBytes?: number;
}

/** A system in a group; every other key is a metric, see columns.mjs. */
export interface Row {
  group: string;
  system: string;
  label: string;
  ours?: boolean;
  /** Why it was not run; then it has no metrics. */
  notRun?: string;
  rounds?: Record<string, unknown>[];
  /** Instead of rounds, where the cost of a request is compared. */
  windows?: { cpuMicros: number; counts: boolean; [name: string]: unknown }[];
  // oxlint-disable-next-line typescript/no-explicit-any -- numbers, errors by kind, booleans: the column knows
  [metric: string]: any;
}

export interface Chart {
  metric: string;
  title: string;
  unit: string;
  better: 'lower' | 'higher';
  log?: boolean;
}

export interface Column {
  key: string;
  title: string;
  heading: string;
  unit: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- see Row
  format: (value: any) => string;
  better?: 'lower' | 'higher';
  /** How rounds make one figure, if not as their median. */
  combined?: 'sum' | 'most';
}

export interface Table {
  caption?: string;
  /** Written without padding. */
  dense?: boolean;
  head: string[];
  align: string[];
  rows: { ours: boolean; cells: Cell[] }[];
}

export interface Cell {
  text: string;
  /** The least and the most of the rounds. */
  spread?: string;
}

/** The bars of a group: its values, and the least and the most of the rounds where there were several. */
export interface Panel {
  name: string;
  bars: {
    label: string;
    ours: boolean;
    value: number;
    text: string;
    least?: number;
    most?: number;
  }[];
}

export interface Panels {
  panels: Panel[];
  range: { min: number; max: number };
  log: boolean;
  column: Column;
}

/** A value of another system that is better than that of nestjs-cluster's default. */
export interface Ahead {
  system: string;
  label: string;
  metric: string;
  title: string;
  group: string;
  value: number;
  ours: number;
}
