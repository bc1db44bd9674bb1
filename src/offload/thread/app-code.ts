import { pathToFileURL } from 'node:url';
import { appImport } from '../../contract/snapshot/app-import.js';
import type { MainFile } from './plan.js';

/** Evaluates the code of the app in a thread. */
export class AppCode {
  #whole: Promise<unknown> | undefined;

  constructor(private readonly main: MainFile | undefined) {}

  /**
   * Imports a file that declares a class. If a bundler made the file, the import may only define
   * modules that other code evaluates. So the thread then imports the whole app, as a worker does,
   * without creating it.
   *
   * @param find looks for the class, also in the exports of the file.
   */
  async evaluate<T>(
    file: string,
    find: (exports: object) => T | undefined,
  ): Promise<T | undefined> {
    const exports = (await import(pathToFileURL(file).href)) as object;
    const found = find(exports);
    if (found !== undefined || this.main === undefined) return found;
    await (this.#whole ??= importWhole(this.main));
    return find(exports);
  }
}

async function importWhole({ file, importsApp }: MainFile): Promise<void> {
  await import(pathToFileURL(file).href);
  if (importsApp) await appImport()?.({} as never);
}
