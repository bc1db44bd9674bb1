import { join } from 'node:path';
import { npmEnvironment, runCommand } from '../../support/run-command.js';
import { ROOT } from './temporary-project.js';

/** What `npm pack` made of the package. */
export interface Tarball {
  readonly path: string;
  /** Paths inside the package, sorted. */
  readonly files: readonly string[];
  readonly sizeBytes: number;
  readonly unpackedBytes: number;
  /** Of those of its files that `matches`. */
  bytesOf(matches: (path: string) => boolean): number;
}

interface PackReport {
  readonly filename: string;
  readonly files: readonly { readonly path: string; readonly size: number }[];
  readonly size: number;
  readonly unpackedSize: number;
}

/** Packs the package as it is built: no script runs, so nothing is built again. */
export async function packInto(directory: string): Promise<Tarball> {
  const { code, stdout, stderr } = await runCommand(
    'npm',
    ['pack', '--json', '--ignore-scripts', '--pack-destination', directory],
    { cwd: ROOT, env: npmEnvironment() },
  );
  if (code !== 0) throw new Error(`npm pack ended with ${code}\n${stderr}`);
  const [report] = JSON.parse(stdout) as PackReport[];
  if (report === undefined) throw new Error(`npm pack reported no package: ${stdout}`);
  return {
    path: join(directory, report.filename),
    files: report.files.map(({ path }) => path).sort(),
    sizeBytes: report.size,
    unpackedBytes: report.unpackedSize,
    bytesOf: (matches) =>
      report.files.filter(({ path }) => matches(path)).reduce((bytes, { size }) => bytes + size, 0),
  };
}
