import { type FileHandle, open, rm } from 'node:fs/promises';
import { clean, ClusterRefusedError } from '../../contract/errors/index.js';

/** A file that is there whole or not at all. */
export class ProfileFile {
  #whole = false;

  private constructor(
    readonly path: string,
    private readonly handle: FileHandle,
  ) {}

  /** Takes the name before anything is asked: nothing that is there is lost. */
  static async create(path: string): Promise<ProfileFile> {
    try {
      return new ProfileFile(path, await open(path, 'wx', 0o600));
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      const why =
        code === 'EEXIST' ? 'it exists already; name another one by --output' : clean(message);
      throw new ClusterRefusedError(`cannot write ${path}: ${why}`);
    }
  }

  /** @returns how many bytes have been written. */
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
    this.#whole = true;
    return bytes;
  }

  /** Leaves no half file. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.handle.close().catch(() => {});
    if (!this.#whole) await rm(this.path, { force: true });
  }
}
