import { once } from 'node:events';
import net from 'node:net';

/** Where to connect: what `net.connect()` takes. */
export type Target = { readonly host: string; readonly port: number } | { readonly path: string };

/** The outcome of a client that was served by a process that is about to end. */
export const SERVED = '200, closing';

/** The same before it knew. */
export const SERVED_BEFORE = '200';

/** Clients that connect all at once, and ask at once. */
export class Burst {
  /** Resolves once the kernel has accepted every one of them, or refused it. */
  readonly connected: Promise<unknown>;
  readonly #ended: Promise<string[]>;

  constructor(
    targets: readonly Target[],
    {
      each,
      path = '/hello',
      closing = false,
    }: {
      readonly each: number;
      readonly path?: string;
      /** Each asks to close its connection after the answer. */
      readonly closing?: boolean;
    },
  ) {
    const clients = targets.flatMap((target) =>
      Array.from({ length: each }, () => net.connect({ ...target, allowHalfOpen: false })),
    );
    this.connected = Promise.allSettled(clients.map((socket) => once(socket, 'connect')));
    this.#ended = Promise.all(clients.map((socket) => outcomeOf(socket, requestOf(path, closing))));
  }

  /** How often each outcome came: a status line with `closing` where it said so, or an error's code. */
  async outcomes(): Promise<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const outcome of await this.#ended) counts[outcome] = (counts[outcome] ?? 0) + 1;
    return counts;
  }
}

function requestOf(path: string, closing: boolean): string {
  return `GET ${path} HTTP/1.1\r\nHost: test\r\n${closing ? 'Connection: close\r\n' : ''}\r\n`;
}

function outcomeOf(socket: net.Socket, request: string): Promise<string> {
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => (text += chunk));
  socket.on('connect', () => socket.write(request));
  return new Promise((resolve) => {
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code ?? 'error'));
    socket.once('end', () => {
      const status = /^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 'nothing';
      resolve(`${status}${/^connection: close\r$/im.test(text) ? ', closing' : ''}`);
    });
  });
}
