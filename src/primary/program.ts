import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, relative, sep } from 'node:path';
import type { ProgramPaths, Release } from '../decide/cluster-state.js';

export interface ProgramStart {
  /** As in `process.argv[1]`. */
  readonly script: string;
  /** The kernel's path to the working directory, without symlinks. */
  readonly cwd: string;
  /** The shell's path to the working directory, from the variable PWD, with symlinks. */
  readonly pwd: string | undefined;
}

/**
 * The paths of the program as the user typed them, including symlinks. If a deploy points the
 * symlink `current` to a new directory, the next reload uses the script and the working directory
 * there. Before the reload, a dead worker is replaced by a worker of its own release.
 */
export class Program {
  readonly #script: string;
  readonly #cwd: string;

  constructor({ script, cwd, pwd }: ProgramStart) {
    const typed = pwd !== undefined && isAbsolute(pwd) && realpath(pwd) === cwd ? pwd : cwd;
    // systemd sets no PWD and resolves the working directory. The script's path may still have a symlink.
    this.#cwd = typed === cwd ? (behindSymlink(script, cwd) ?? cwd) : typed;
    // Node resolves a relative script against the kernel's path. Here the shell's path replaces it.
    this.#script = isInside(cwd, script) ? join(this.#cwd, relative(cwd, script)) : script;
  }

  /**
   * Resolves the symlinks to their current targets.
   *
   * @throws Error when the working directory or the script's directory does not exist.
   */
  resolve(): ProgramPaths {
    const cwd = realpath(this.#cwd);
    if (cwd === undefined) throw new Error(`the working directory ${this.#cwd} does not exist`);
    const directory = realpath(dirname(this.#script));
    if (directory === undefined) {
      throw new Error(`the directory of the script ${this.#script} does not exist`);
    }
    // The script may be given without its extension. Only Node can resolve such a path.
    return { script: realpath(this.#script) ?? join(directory, basename(this.#script)), cwd };
  }

  /**
   * Like {@link resolve}, but returns the error.
   *
   * @param earlier a release. If given, only the existence of its files is checked.
   */
  find(earlier?: ProgramPaths): ProgramPaths | Error {
    if (earlier !== undefined) {
      const missing = [dirname(earlier.script), earlier.cwd].find((path) => !existsSync(path));
      return missing === undefined ? earlier : new Error(`${missing} does not exist`);
    }
    try {
      return this.resolve();
    } catch (error) {
      return error as Error;
    }
  }

  /** The release for a new worker. If its directory was removed, its paths are resolved again. */
  revive(release: Release): Release {
    if (!(this.find(release) instanceof Error)) return release;
    const now = this.find();
    // If they cannot be resolved, the worker fails to start and reports the reason.
    return now instanceof Error ? release : { ...release, ...now };
  }
}

/** `cwd` through a symlink in the path of `script`; `undefined` if no symlink there leads to `cwd`. */
function behindSymlink(script: string, cwd: string): string | undefined {
  for (let directory = dirname(script); dirname(directory) !== directory;) {
    const real = realpath(directory);
    if (real !== undefined && real !== directory && isInside(real, cwd)) {
      return join(directory, relative(real, cwd));
    }
    directory = dirname(directory);
  }
  return undefined;
}

function isInside(directory: string, path: string): boolean {
  const way = relative(directory, path);
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

function realpath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
