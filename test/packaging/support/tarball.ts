import { join } from 'node:path';
import { inject } from 'vitest';

/** The package as packed by `npm pack`. */
export interface Tarball {
  readonly path: string;
  /** Paths inside the package, sorted. */
  readonly files: readonly string[];
  readonly sizeBytes: number;
  readonly unpackedBytes: number;
  /** Total size of the files whose path `matches`. */
  bytesOf(matches: (path: string) => boolean): number;
}

/** The output of `npm pack --json`. */
export interface PackReport {
  readonly name: string;
  readonly filename: string;
  readonly files: readonly { readonly path: string; readonly size: number }[];
  readonly size: number;
  readonly unpackedSize: number;
}

declare module 'vitest' {
  interface ProvidedContext {
    packed: { readonly directory: string; readonly reports: readonly PackReport[] };
  }
}

/** A package, packed once for all files of the run; see `pack-once.ts`. */
export function packed(name = 'nestjs-cluster'): Tarball {
  const { directory, reports } = inject('packed');
  const report = reports.find((each) => each.name === name);
  if (report === undefined) throw new Error(`npm pack packed no ${name}`);
  return {
    path: join(directory, report.filename),
    files: report.files.map(({ path }) => path).sort(),
    sizeBytes: report.size,
    unpackedBytes: report.unpackedSize,
    bytesOf: (matches) =>
      report.files.filter(({ path }) => matches(path)).reduce((bytes, { size }) => bytes + size, 0),
  };
}
