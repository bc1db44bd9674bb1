import { readFileSync } from 'node:fs';

/** What of Node's report is used; its types leave it out. */
interface Report {
  readonly userLimits?: { readonly open_files?: { readonly soft?: unknown } };
}

/** Not in Node's types: without it Node 20 looks up names of the network's interfaces. */
type ReportSettings = NodeJS.ProcessReport & { excludeNetwork?: boolean };

/** What a system says of its limits, as text, and in Node's own report. */
export interface LimitSources {
  /** Of /proc. */
  readonly text: () => string;
  readonly report: () => unknown;
}

/**
 * How many files and sockets this process may have open; `undefined` where that is not known, or
 * without limit. It is the soft limit, which Node raises to the hard one when it starts.
 */
export function openFilesLimit(sources: LimitSources = OF_THIS_PROCESS): number | undefined {
  return read(() => limitIn(sources.text())) ?? read(() => limitOf(sources.report()));
}

const OF_THIS_PROCESS: LimitSources = {
  text: () => readFileSync('/proc/self/limits', 'utf8'),
  // Takes some milliseconds: for systems without /proc.
  report: () => {
    const settings: ReportSettings = process.report;
    const { excludeNetwork } = settings;
    settings.excludeNetwork = true;
    try {
      return settings.getReport();
    } finally {
      settings.excludeNetwork = excludeNetwork ?? false;
    }
  },
};

function limitIn(text: string): number | undefined {
  return toLimit(/^Max open files\s+(\S+)/m.exec(text)?.[1]);
}

function limitOf(report: unknown): number | undefined {
  return toLimit((report as Report).userLimits?.open_files?.soft);
}

function toLimit(value: unknown): number | undefined {
  const limit = Number(value ?? NaN);
  return limit > 0 && Number.isFinite(limit) ? limit : undefined;
}

function read(source: () => number | undefined): number | undefined {
  try {
    return source();
  } catch {
    return undefined; // there is no such file, or no descriptor left to open it by
  }
}
