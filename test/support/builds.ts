import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { behaviour } from './behaviour.js';
import { temporaryDirectory } from './temporary-directory.js';

/** The app of `test/fixtures/app.mjs` as a file on disk that can be another at each fork. */
export class Build {
  readonly #path: string;

  /** @param directory of the running test's own, unless given. */
  constructor(name: string, directory = temporaryDirectory()) {
    this.#path = join(directory, 'build.mjs');
    this.deploy(name);
  }

  /** The environment that makes workers run what is deployed when they are forked. */
  get env(): { readonly TEST_APP: string } {
    return { TEST_APP: this.#path };
  }

  /** Makes processes that are forked from now on run this file of `test/fixtures/behaviours`. */
  deploy(name: string): void {
    this.write(`export * from '${pathToFileURL(behaviour(name).TEST_APP).href}';\n`);
  }

  /** Makes processes that are forked from now on run this source. */
  write(source: string): void {
    writeFileSync(`${this.#path}.new`, source);
    renameSync(`${this.#path}.new`, this.#path);
  }
}
