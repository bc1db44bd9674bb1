import type { Server, Socket } from 'node:net';
import tls from 'node:tls';

/**
 * A client that sends nothing for so long has most likely nothing to send. The
 * protocol has no word for goodbye: what it sends while we close is lost.
 */
const QUIET_MS = 100;

/** A client that has not closed its side by then never will. */
const HALF_OPEN_MS = 1_000;

interface SocketState {
  /** Handlers that owe it an answer. */
  running: number;
  bytesRead: number;
  /** Monotonic ms; since then nothing has come. */
  quietSince: number;
  endedAt: number | undefined;
}

/** The connections of a TCP microservice: clients keep one for good, and send over it whenever they like. */
export class RpcSockets {
  readonly #sockets = new Map<Socket, SocketState>();

  /** @param open those that were there before. */
  constructor(
    readonly server: Server,
    open: Iterable<Socket>,
  ) {
    const accepted = server instanceof tls.Server ? 'secureConnection' : 'connection';
    server.on(accepted, (socket: Socket) => void this.#stateOf(socket));
    for (const socket of open) this.#stateOf(socket);
  }

  get open(): number {
    return this.#sockets.size;
  }

  /**
   * A handler begins.
   *
   * @returns to be called when it has ended.
   */
  begin(socket: Socket): () => void {
    const state = this.#stateOf(socket);
    state.running += 1;
    return () => (state.running -= 1);
  }

  /** Ends connections over which nothing is going on. @param patient waits until the client is quiet. */
  closeIdle(patient: boolean): void {
    const now = performance.now();
    for (const [socket, state] of this.#sockets) {
      if (state.endedAt !== undefined) {
        if (now - state.endedAt > HALF_OPEN_MS) socket.destroy();
        continue;
      }
      if (state.bytesRead !== socket.bytesRead || state.running > 0) {
        state.bytesRead = socket.bytesRead;
        state.quietSince = now;
      }
      if (state.running > 0 || socket.writableLength > 0) continue;
      if (patient && now - state.quietSince < QUIET_MS) continue;
      state.endedAt = now;
      socket.end();
    }
  }

  #stateOf(socket: Socket): SocketState {
    let state = this.#sockets.get(socket);
    if (state === undefined) {
      state = {
        running: 0,
        bytesRead: socket.bytesRead,
        quietSince: performance.now(),
        endedAt: undefined,
      };
      if (socket.destroyed) return state;
      this.#sockets.set(socket, state);
      socket.once('close', () => this.#sockets.delete(socket));
    }
    return state;
  }
}
