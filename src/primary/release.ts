import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, relative, sep } from 'node:path';
import type { ProgramPaths, Release } from '../decide/cluster-state.js';

export interface ProgramStart {
  /** As in `process.argv[1]`. */
  readonly script: string;
  /** The working directory as the kernel knows it: without symlinks. */
  readonly cwd: string;
  /** The working directory as the shell knows it, from the variable PWD: with symlinks. */
  readonly pwd: string | undefined;
}

/**
 * The program by the paths that its user typed, including symlinks. If a deploy points the symlink
 * `current` to a new directory, the next reload uses the script and the working directory there. A
 * worker that dies before the reload is replaced by a worker of its own release.
 */
export class Program {
  readonly #script: string;
  /** The working directory as its user typed it, if that is known. */
  readonly #cwd: string;
  /** Whether `#cwd` contains a symlink, which a deploy can point to another release. */
  readonly #named: boolean;
  /** The working directory through a symlink in the script's path, if only the script's path has a symlink. */
  readonly #cwdByScript: string | undefined;
  /** The relative path from the script's directory to the working directory. */
  readonly #fromScript: string;
  #said: string | undefined;

  /** @param warn gets the name of the working directory if the user's path is not used. */
  constructor(
    { script, cwd, pwd }: ProgramStart,
    private readonly warn: (message: string) => void,
  ) {
    this.#cwd = pwd !== undefined && isAbsolute(pwd) && realpath(pwd) === cwd ? pwd : cwd;
    this.#named = this.#cwd !== cwd;
    // Node made a relative script absolute with the kernel's path. This line uses the shell's path instead.
    this.#script = isInside(cwd, script) ? join(this.#cwd, relative(cwd, script)) : script;
    // systemd sets no PWD and resolves the working directory. The script's path may still have a symlink.
    this.#cwdByScript = this.#named ? undefined : behindSymlink(script, cwd);
    this.#fromScript = relative(dirname(this.#scriptNow() ?? script), cwd);
  }

  /**
   * Resolves the symlinks to the files to which they lead now.
   *
   * @throws Error when the working directory or the script's directory does not exist.
   */
  resolve(): ProgramPaths {
    const script = this.#scriptNow();
    const { cwd, note } = this.#cwdNow(script);
    if (script === undefined) {
      throw new Error(`the directory of the script ${this.#script} is not there`);
    }
    this.#say(note);
    return { script, cwd };
  }

  /**
   * Like {@link resolve}, but returns the error.
   *
   * @param earlier a release. If it is given, only the existence of its files is checked.
   */
  find(earlier?: ProgramPaths): ProgramPaths | Error {
    if (earlier !== undefined) {
      const missing = [dirname(earlier.script), earlier.cwd].find((path) => !existsSync(path));
      return missing === undefined ? earlier : new Error(`${missing} is not there`);
    }
    try {
      return this.resolve();
    } catch (error) {
      return error as Error;
    }
  }

  /**
   * The release for a new worker. If its directory is gone, its paths are looked up again.
   *
   * @param patient whether to keep the working directory if only that is missing. It may come back.
   */
  revive(release: Release, patient = true): Release {
    const scriptIsThere = existsSync(dirname(release.script));
    if (scriptIsThere && existsSync(release.cwd)) return release;
    try {
      const { cwd, note, guessed } = this.#cwdNow(release.script);
      if (!scriptIsThere || !guessed) return { ...release, ...this.resolve() };
      // The script is still there, so this was not a deploy: the directory may come back.
      if (patient) return release;
      this.#say(note);
      return { ...release, cwd };
    } catch {
      return release; // the worker will fail to start, and will report why
    }
  }

  /** @throws Error if no working directory is found. */
  #cwdNow(script: string | undefined): { cwd: string; note?: string; guessed?: true } {
    const byScript = this.#cwdByScript && realpath(this.#cwdByScript);
    if (byScript !== undefined && byScript !== this.#cwd) {
      const note = `workers run in ${byScript}: ${this.#cwdByScript} leads there, and so was the script named`;
      return { cwd: byScript, note };
    }
    const named = realpath(this.#cwd);
    if (named !== undefined) return { cwd: named };
    const missing = `the working directory ${this.#cwd} is not there`;
    // A symlink that leads nowhere comes from a failed deploy, so no other directory is guessed.
    if (this.#named) throw new Error(missing);
    if (script === undefined) {
      throw new Error(
        `${missing}, nor is the script ${this.#script}; start it by a name that outlives a deploy (…/current/main.js)`,
      );
    }
    // A parent directory is not used. It may be /tmp, for example, where any user could place an .env file.
    const beside = realpath(join(dirname(script), this.#fromScript));
    const cwd = beside ?? dirname(script);
    const why = beside ? 'the same place as seen from the script' : 'the directory of the script';
    return { cwd, note: `${missing}; workers run in ${cwd}: ${why}`, guessed: true };
  }

  /** The real path of the script; `undefined` if its directory does not exist. */
  #scriptNow(): string | undefined {
    const directory = realpath(dirname(this.#script));
    // The script may have been named without its extension. Only Node can find such a file.
    const named = directory === undefined ? undefined : join(directory, basename(this.#script));
    return realpath(this.#script) ?? named;
  }

  /** Warns once about each choice of a working directory. */
  #say(note: string | undefined): void {
    if (note === undefined || note === this.#said) return;
    this.#said = note;
    this.warn(note);
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
