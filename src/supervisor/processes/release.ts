import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, relative, sep } from 'node:path';

/** The place of a program: real paths, without symlinks. */
export interface ProgramPaths {
  readonly script: string;
  readonly cwd: string;
}

/** The program that the workers of a generation run. */
export interface Release extends ProgramPaths {
  readonly generation: number;
}

/** The start of a program. */
export interface ProgramStart {
  /** As in `process.argv[1]`. */
  readonly script: string;
  /** As the kernel knows it. */
  readonly cwd: string;
  /** As the shell knows it, which keeps symlinks. */
  readonly pwd: string | undefined;
}

/**
 * The program as its user named it, symlinks included. A deploy that points
 * `current` at a new directory takes effect with the next reload, for the
 * script and for the working directory. A worker that dies before that is
 * replaced by one of its own release.
 */
export class Program {
  readonly #script: string;
  /** The working directory as its user named it. */
  readonly #cwd: string;
  /** By a symlink: that leads to what is deployed now. The kernel's path leads to one release for ever. */
  readonly #named: boolean;
  /** The same by the symlink in the path of the script, if there is one. */
  readonly #cwdByScript: string | undefined;
  /** The way from the script's directory to the working directory. */
  readonly #fromScript: string;
  #said: string | undefined;

  /** @param warn is told which working directory was taken, where its user has not named it. */
  constructor(
    { script, cwd, pwd }: ProgramStart,
    private readonly warn: (message: string) => void,
  ) {
    this.#cwd = pwd !== undefined && isAbsolute(pwd) && realpath(pwd) === cwd ? pwd : cwd;
    this.#named = this.#cwd !== cwd;
    // Node has made a relative script absolute by the kernel's path: back to the shell's.
    this.#script = isInside(cwd, script) ? join(this.#cwd, relative(cwd, script)) : script;
    // systemd starts its services in the real path, and without a PWD.
    this.#cwdByScript = this.#named ? undefined : behindSymlink(script, cwd);
    this.#fromScript = relative(dirname(this.#scriptNow() ?? script), cwd);
  }

  /**
   * Follows the names to the files that they mean now.
   *
   * @throws Error when the working directory or the script's directory is not there.
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
   * The same, with the error as a result.
   *
   * @param earlier a release of which it is asked only whether its files are still there.
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
   * The same release; where its directory has been cleaned away, what the names lead to now.
   *
   * @param patient waits for a working directory that is gone while the script is there.
   */
  revive(release: Release, patient = true): Release {
    const scriptIsThere = existsSync(dirname(release.script));
    if (scriptIsThere && existsSync(release.cwd)) return release;
    try {
      const { cwd, note, guessed } = this.#cwdNow(release.script);
      if (!scriptIsThere || !guessed) return { ...release, ...this.resolve() };
      // No deploy took the directory alone: it may come back. If it does not, any is better than none.
      if (patient) return release;
      this.#say(note);
      return { ...release, cwd };
    } catch {
      return release; // the worker fails to start, and says so
    }
  }

  /** @throws Error where there is none. */
  #cwdNow(script: string | undefined): { cwd: string; note?: string; guessed?: true } {
    const byScript = this.#cwdByScript && realpath(this.#cwdByScript);
    if (byScript !== undefined && byScript !== this.#cwd) {
      const note = `workers run in ${byScript}: ${this.#cwdByScript} leads there, and so was the script named`;
      return { cwd: byScript, note };
    }
    const named = realpath(this.#cwd);
    if (named !== undefined) return { cwd: named };
    const missing = `the working directory ${this.#cwd} is not there`;
    // A symlink that leads nowhere is a deploy that went wrong.
    if (this.#named) throw new Error(missing);
    if (script === undefined) {
      throw new Error(
        `${missing}, nor is the script ${this.#script}; start it by a name that outlives a deploy (…/current/main.js)`,
      );
    }
    // Not a parent of what is gone: in one like /tmp anybody could leave an .env.
    const beside = realpath(join(dirname(script), this.#fromScript));
    const cwd = beside ?? dirname(script);
    const why = beside ? 'the same place as seen from the script' : 'the directory of the script';
    return { cwd, note: `${missing}; workers run in ${cwd}: ${why}`, guessed: true };
  }

  /** The script as it is now; its directory has to be there. */
  #scriptNow(): string | undefined {
    const directory = realpath(dirname(this.#script));
    // It may have been named without its extension: then only Node finds it.
    const named = directory === undefined ? undefined : join(directory, basename(this.#script));
    return realpath(this.#script) ?? named;
  }

  /** Once for each change. */
  #say(note: string | undefined): void {
    if (note === undefined || note === this.#said) return;
    this.#said = note;
    this.warn(note);
  }
}

/** `cwd` by the symlink in the path of `script` that leads to it or above it, if there is one. */
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
