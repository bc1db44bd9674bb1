import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { PROGRAMS } from './cluster-process.js';
import { temporaryDirectory } from './temporary-directory.js';

/** Directories `rel1`, `rel2` … and a link `current` to one of them. */
export class Releases {
  readonly root = temporaryDirectory();
  readonly current = join(this.root, 'current');

  /** @param source of its `main.mjs`; without one it runs the app of the fixtures. */
  add(name: string, source?: string): string {
    const path = join(this.root, name);
    mkdirSync(path);
    writeFileSync(
      join(path, 'main.mjs'),
      source ??
        `globalThis.release = '${name}'; await import('${pathToFileURL(PROGRAMS.app).href}');`,
    );
    return path;
  }

  /** As `ln -sfn`, in one step. */
  pointTo(name: string): void {
    symlinkSync(name, `${this.current}.new`);
    renameSync(`${this.current}.new`, this.current);
  }
}
