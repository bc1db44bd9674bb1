import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InspectionError } from '../../contract/errors/index.js';
import { readFrames } from './read-frames.js';

/** The maximum size of a transfer; a larger transfer fails. No tool opens a larger profile. */
const MAX_BYTES = 512 * 1024 * 1024;

/**
 * Receives a profile or a heap snapshot from one worker over a separate unix socket, in a directory
 * that only this user can enter. The bytes are passed on as they arrive and are not stored. A slow
 * reader makes the worker wait.
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
    server.on('error', () => {}); // `overdue` reports a worker that does not connect
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
   * Yields the bytes that the worker sends. When the reader stops, the connection is closed.
   *
   * @param silenceMs the maximum time without a byte that arrives or is read. After it the transfer fails.
   * @param overdue resolves with an error if the worker has not connected in time.
   * @throws InspectionError if the worker does not connect, reports an error, or ends early.
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
      const why = `the worker sent nothing for ${Math.round(silenceMs / 1_000)} s, or nobody read it: its main thread may be in native code`;
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
