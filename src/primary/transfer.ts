import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { clean, InspectionError } from '../errors/index.js';

/** Time for a worker to come with what it was asked for; its watchdog looks 4 times a second at least. */
const CONNECT_MS = 2_000;

/** See `worker/byte-sink.cts`. */
const HEADER_BYTES = 4;
const ERROR_BIT = 2 ** 31;
const MAX_ERROR_BYTES = 4_096;

/** The largest that is worth having: Chrome opens no larger snapshot either. */
const MAX_BYTES = 512 * 1024 * 1024;

/**
 * Takes something large from one worker: over a unix socket of its own, in a
 * directory that only this user can enter. It is passed on as it comes: nothing
 * is kept, and a reader that is slow makes the worker wait.
 */
export class Transfer {
  readonly #accepted: Promise<Socket>;

  private constructor(
    private readonly directory: string,
    readonly path: string,
    private readonly server: Server,
  ) {
    this.#accepted = once(server, 'connection').then(([socket]) => socket as Socket);
  }

  static async open(): Promise<Transfer> {
    const directory = await mkdtemp(join(tmpdir(), 'nestjs-cluster-'));
    const path = join(directory, 'transfer');
    const server = createServer({ pauseOnConnect: true });
    server.maxConnections = 1;
    try {
      server.listen(path);
      await once(server, 'listening');
    } catch (error) {
      await rm(directory, { recursive: true, force: true });
      throw error;
    }
    return new Transfer(directory, path, server);
  }

  /**
   * What the worker sends. To stop reading ends the worker's part too.
   *
   * @param silenceMs longest time in which nothing comes, or nobody reads.
   * @throws InspectionError where the worker does not come, fails, or ends in the middle.
   */
  async *read(
    silenceMs: number,
    connectMs = CONNECT_MS,
    maxBytes = MAX_BYTES,
  ): AsyncGenerator<Buffer, void> {
    const timer = new AbortController();
    const overdue = after(connectMs, timer.signal);
    const socket = await Promise.race([this.#accepted, overdue]).finally(() => timer.abort());
    if (socket === undefined) {
      throw new InspectionError(
        'silent',
        'the watchdog of the worker did not answer: the process is stopped, or the machine is overloaded; try again, or look at its state with ps',
      );
    }
    await this.#unlink();
    socket.setTimeout(silenceMs, () => {
      const why = `nothing came of the worker for ${Math.round(silenceMs / 1_000)} s: it is in native code, or nobody read what came; ask for the stack`;
      socket.destroy(new InspectionError('silent', why));
    });
    yield* payload(socket, maxBytes);
  }

  /** Nobody wants it any more. */
  async close(): Promise<void> {
    void this.#accepted.then((socket) => socket.destroy());
    await this.#unlink();
  }

  async #unlink(): Promise<void> {
    this.server.close();
    await rm(this.directory, { recursive: true, force: true });
  }
}

/** What is in the frames, as it comes. */
async function* payload(socket: Socket, maxBytes: number): AsyncGenerator<Buffer, void> {
  let header = Buffer.alloc(0);
  let left = 0;
  let total = 0;
  let error: Buffer | undefined;
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    for (let rest = chunk; rest.length > 0;) {
      if (left === 0) {
        const missing = HEADER_BYTES - header.length;
        header = Buffer.concat([header, rest.subarray(0, missing)]);
        rest = rest.subarray(missing);
        if (header.length < HEADER_BYTES) continue;
        left = header.readUInt32BE();
        header = Buffer.alloc(0);
        if (left === 0) return;
        if (left >= ERROR_BIT) {
          left = Math.min(left - ERROR_BIT, MAX_ERROR_BYTES);
          error = Buffer.alloc(0);
        }
      }
      const part = rest.subarray(0, left);
      rest = rest.subarray(part.length);
      left -= part.length;
      if (error !== undefined) {
        error = Buffer.concat([error, part]);
        if (left === 0) throw new InspectionError('failed', `the worker: ${clean(String(error))}`);
        continue;
      }
      total += part.length;
      if (total > maxBytes) {
        throw new InspectionError(
          'too-large',
          `it is larger than ${maxBytes} bytes, the most that is passed on; ask for a shorter profile, or a heap profile`,
        );
      }
      if (part.length > 0) yield part;
    }
  }
  throw new InspectionError('ended', 'the worker ended before it was complete');
}

async function after(ms: number, signal: AbortSignal): Promise<undefined> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => clearTimeout(timer));
  });
  return undefined;
}
