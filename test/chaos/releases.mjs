import { cpSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
const START = `import { start } from './app/app.mjs';\nawait start();\n`;

/** The main file of each kind of release. Each broken kind fails in another way. */
const SOURCES = {
  good: START,
  throws: `throw new Error('this release is broken');\n`,
  syntax: 'this is no program\n',
  exits: 'process.exit(0);\n',
  dies: `${START}setTimeout(() => { throw new Error('this release dies young'); }, 0);\n`,
};

export const BROKEN = Object.keys(SOURCES).filter((name) => name !== 'good');

/** Releases of the app, each in its own directory, and the link `current` to the deployed one. */
export class Releases {
  #directory;
  #count = 0;
  #current;

  constructor(directory) {
    this.#directory = directory;
    this.deploy('good');
  }

  /** Path of the main file that the cluster is started with. */
  get script() {
    return join(this.#directory, 'current/main.mjs');
  }

  /** Points `current` at a new release; returns the previous release. */
  deploy(source) {
    const name = `release-${++this.#count}`;
    addFiles(join(this.#directory, name));
    writeFileSync(join(this.#directory, name, 'main.mjs'), SOURCES[source]);
    return this.restore(name);
  }

  /** Points `current` at an existing release; returns the previous release. */
  restore(name) {
    const before = this.#current;
    symlinkSync(name, join(this.#directory, 'current.new'));
    renameSync(join(this.#directory, 'current.new'), join(this.#directory, 'current'));
    this.#current = name;
    return before;
  }

  remove(name) {
    rmSync(join(this.#directory, name), { recursive: true });
  }
}

/** A copy of the app. Packages are linked: thorough/removed-release.test.ts removes them too. */
function addFiles(release) {
  mkdirSync(release);
  symlinkSync(join(ROOT, 'node_modules'), join(release, 'node_modules'));
  cpSync(join(import.meta.dirname, 'app'), join(release, 'app'), { recursive: true });
}
