import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, relative } from 'node:path';

/** The program that the workers of a generation run: real paths, without symlinks. */
export interface Release {
  readonly generation: number;
  readonly script: string;
  readonly cwd: string;
}

/** What a program is started with. */
export interface ProgramStart {
  /** As in `process.argv[1]`. */
  readonly script: string;
  /** As the kernel knows it. */
  readonly cwd: string;
  /** As the shell knows it, which keeps symlinks. */
  readonly pwd: string | undefined;
}

/**
 * The program as its user named it, symlinks included: a deploy that points
 * `current` at a new directory takes effect with the next reload, for the
 * script and for the working directory, and not before: a worker that dies
 * meanwhile is replaced by one of its own release.
 */
export class Program {
  readonly #cwd: string;
  readonly #script: string;

  constructor({ script, cwd, pwd }: ProgramStart) {
    this.#cwd = pwd !== undefined && isAbsolute(pwd) && realpath(pwd) === cwd ? pwd : cwd;
    // Node has made a relative script absolute by the kernel's path: back to the shell's.
    const inside = relative(cwd, script);
    this.#script = inside.startsWith('..') || isAbsolute(inside) ? script : join(this.#cwd, inside);
  }

  /**
   * Where the names lead now.
   *
   * @throws Error when the working directory or the script's directory is not there.
   */
  resolve(generation: number): Release {
    const cwd = realpath(this.#cwd);
    if (cwd === undefined) throw new Error(`the working directory ${this.#cwd} is not there`);
    const directory = realpath(dirname(this.#script));
    if (directory === undefined) {
      throw new Error(`the directory of the script ${this.#script} is not there`);
    }
    // The script may have been named without its extension: then only Node finds it.
    const script = realpath(this.#script) ?? join(directory, basename(this.#script));
    return { generation, script, cwd };
  }

  /** The same release; where its directory has been cleaned away, what the names lead to now. */
  revive(release: Release): Release {
    if (existsSync(release.cwd) && existsSync(dirname(release.script))) return release;
    try {
      return this.resolve(release.generation);
    } catch {
      return release; // the worker fails to start, and says so
    }
  }
}

function realpath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
