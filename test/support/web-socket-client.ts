import { onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { RawClient } from './raw-client.js';

/** A WebSocket that does what the protocol asks of it. */
export class WebSocketClient {
  /** Texts received. */
  readonly received: string[] = [];
  /** How it was closed, as its client sees it. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  readonly #socket: WebSocket;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data: Buffer) => this.received.push(data.toString()));
    // The error is ignored here: tests check the close code.
    socket.on('error', () => {});
    this.closed = new Promise((resolve) => {
      socket.once('close', (code, reason) => resolve({ code, reason: reason.toString() }));
    });
  }

  /** Connects to an HTTP URL; rejects where the server does not take it. */
  static open(base: string, path = '/'): Promise<WebSocketClient> {
    const socket = new WebSocket(new URL(path, base.replace(/^http/, 'ws')));
    onTestFinished(() => socket.terminate());
    const client = new WebSocketClient(socket);
    return new Promise((resolve, reject) => {
      socket.once('open', () => resolve(client));
      socket.once('error', reject);
    });
  }

  send(text: string): void {
    this.#socket.send(text);
  }

  /** Resolves with the next text. */
  next(): Promise<string> {
    return new Promise((resolve) => {
      this.#socket.once('message', (data: Buffer) => resolve(data.toString()));
    });
  }

  terminate(): void {
    this.#socket.terminate();
  }
}

const HANDSHAKE = [
  'Host: test',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
];

/** The bytes of a close frame with status 1012 that are text: all but the first and the last. */
export const SERVICE_RESTART = '\u0002\u0003';

/** A WebSocket whose peer reads everything and answers nothing, not even a close. */
export async function openDeafWebSocket(base: string, path = '/'): Promise<RawClient> {
  const client = await RawClient.open(base);
  client.write([`GET ${path} HTTP/1.1`, ...HANDSHAKE, '', ''].join('\r\n'));
  await client.until(/^HTTP\/1\.1 101 [^]*\r\n\r\n/);
  return client;
}
