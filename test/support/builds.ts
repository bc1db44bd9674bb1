import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { pathOfBehaviour } from './behaviour.js';
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
  get env(): { readonly BEHAVE: string } {
    return { BEHAVE: this.#path };
  }

  /** Makes processes that are forked from now on run this behaviour of `test/fixtures/behaviours`. */
  deploy(name: string): void {
    const [path, exported] = pathOfBehaviour(name).split('#');
    const names = exported === undefined ? '*' : `{ ${exported} as setup }`;
    this.write(`export ${names} from '${pathToFileURL(path!).href}';\n`);
  }

  /** Makes processes that are forked from now on run this source. */
  write(source: string): void {
    writeFileSync(`${this.#path}.new`, source);
    renameSync(`${this.#path}.new`, this.#path);
  }
}
