import { existsSync } from 'node:fs';
import { type FileHandle, link, open, rename, rm } from 'node:fs/promises';
import { clean, ClusterRefusedError } from '../../contract/errors/index.js';

/** A file that is named `<path>.part` until it is complete, and then gets its final name. */
export class ProfileFile {
  private constructor(
    readonly path: string,
    private readonly part: string,
    private readonly handle: FileHandle,
  ) {}

  /** Creates the `.part` file. Fails if `path` exists, so that no profile is recorded in vain. */
  static async create(path: string): Promise<ProfileFile> {
    if (existsSync(path)) throw taken(path);
    const part = `${path}.part`;
    try {
      return new ProfileFile(path, part, await open(part, 'wx', 0o600));
    } catch (error) {
      throw refusal(part, error);
    }
  }

  /** Writes the whole source and gives the file its name. @returns the number of bytes. */
  async take(source: AsyncIterable<Buffer>): Promise<number> {
    let bytes = 0;
    try {
      for await (const chunk of source) {
        await this.handle.appendFile(chunk);
        bytes += chunk.length;
      }
    } catch (error) {
      const { code, message, syscall } = error as NodeJS.ErrnoException;
      const why =
        syscall === 'write'
          ? `cannot write ${this.path}: ${message}`
          : code === 'ECONNRESET'
            ? 'the worker ended, or could not go on, before it was complete; the log of the cluster says more'
            : message;
      throw new ClusterRefusedError(`${clean(why)}; nothing is left of the file`);
    }
    await this.#takeName();
    return bytes;
  }

  async #takeName(): Promise<void> {
    try {
      await link(this.part, this.path); // unlike rename(), fails if a file has that name
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'EPERM' && code !== 'ENOTSUP') throw refusal(this.path, error);
      await rename(this.part, this.path); // the file system has no links, e.g. FAT
    }
  }

  /** Removes the name `.part`. A complete file stays, under its final name. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.handle.close().catch(() => {});
    await rm(this.part, { force: true });
  }
}

function refusal(path: string, error: unknown): ClusterRefusedError {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'EEXIST') return taken(path);
  return new ClusterRefusedError(`cannot write ${path}: ${clean(message)}`);
}

function taken(path: string): ClusterRefusedError {
  return new ClusterRefusedError(
    `cannot write ${path}: it exists already; remove it, or name another one by --output`,
  );
}
