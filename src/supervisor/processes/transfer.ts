import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InspectionError } from '../../contract/errors/index.js';
import { readFrames } from './read-frames.js';

/** More opens in no tool. */
const MAX_BYTES = 512 * 1024 * 1024;

/**
 * Takes something large from one worker: over a unix socket of its own, in a
 * directory that only this user can enter. It is passed on as it comes: nothing
 * is kept, and a reader that is slow makes the worker wait.
 */
export class Transfer {
  readonly #come: Promise<Socket>;
  #leave!: () => void;
  readonly #left = new Promise<InspectionError>((resolve) => {
    this.#leave = () => resolve(new InspectionError('ended', 'nobody waits for it any more'));
  });
  #socket: Socket | undefined;

  private constructor(
    private readonly directory: string,
    readonly path: string,
    private readonly server: Server,
    gone: AbortSignal,
  ) {
    this.#come = new Promise((resolve) => server.once('connection', resolve));
    server.on('error', () => {}); // `overdue` tells of a worker that does not come
    gone.addEventListener('abort', () => {
      this.#leave();
      this.#socket?.destroy();
    });
    if (gone.aborted) this.#leave();
  }

  static async open(gone: AbortSignal): Promise<Transfer> {
    const directory = await mkdtemp(join(tmpdir(), 'nestjs-cluster-'));
    const path = join(directory, 'transfer');
    const server = createServer({ pauseOnConnect: true });
    server.maxConnections = 1;
    try {
      await once(server.listen(path), 'listening');
    } catch (error) {
      await rm(directory, { recursive: true, force: true });
      throw error;
    }
    return new Transfer(directory, path, server, gone);
  }

  /**
   * Yields what the worker sends. A reader that stops ends the worker's part too.
   *
   * @param silenceMs longest time in which nothing comes, or nobody reads.
   * @param overdue the worker has not come by then, and this is why.
   * @throws InspectionError where the worker does not come, fails, or ends in the middle.
   */
  async *read(
    silenceMs: number,
    overdue: Promise<InspectionError>,
    maxBytes = MAX_BYTES,
  ): AsyncGenerator<Buffer, void> {
    const socket = await Promise.race([this.#come, this.#left, overdue]);
    if (socket instanceof Error) throw socket;
    this.#socket = socket;
    await this.#closeServer();
    socket.setTimeout(silenceMs, () => {
      const why = `nothing came of the worker for ${Math.round(silenceMs / 1_000)} s, or nobody read it: its main thread may be in native code`;
      socket.destroy(new InspectionError('silent', why));
    });
    try {
      yield* readFrames(socket, maxBytes);
    } catch (error) {
      if (error instanceof InspectionError) throw error;
      throw new InspectionError(
        'ended',
        `the worker ended before it was complete: ${String(error)}`,
      );
    }
  }

  async close(): Promise<void> {
    this.#socket?.destroy();
    await this.#closeServer();
  }

  async #closeServer(): Promise<void> {
    this.server.close();
    await rm(this.directory, { recursive: true, force: true });
  }
}
