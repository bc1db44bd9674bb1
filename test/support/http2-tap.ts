import net from 'node:net';
import { onTestFinished } from 'vitest';

/** RFC 9113, 6. */
const HEADERS = 0x1;
const RST_STREAM = 0x3;
const GOAWAY = 0x7;

const FRAME_HEAD_BYTES = 9;

const PREFACE_BYTES = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'.length;

interface Frame {
  readonly type: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/**
 * A way to a server of HTTP/2 in clear text on which frames are looked at: a client of Node says
 * `REFUSED_STREAM` also of what it has never sent. It keeps back what a server says from its GOAWAY
 * on, until {@link release}.
 */
export class Http2Tap {
  url = '';
  /** Frames of the server that end a stream in any way but its own. */
  resets = 0;
  /** Requests that were sent, and lie above the last stream that the server said it takes. */
  refused = 0;
  /** Requests that were sent. */
  requests = 0;
  readonly #held = new Set<net.Socket>();

  private constructor() {}

  static async to(base: string): Promise<Http2Tap> {
    const tap = new Http2Tap();
    const { hostname, port } = new URL(base);
    const server = net.createServer((client) => {
      const upstream = net.connect({ host: hostname, port: Number(port) });
      tap.#watch(client, upstream);
      client.pipe(upstream).pipe(client);
      for (const [one, other] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        one.on('error', () => {}).on('close', () => other.destroy());
      }
    });
    onTestFinished(() => void server.close());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    tap.url = `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`;
    return tap;
  }

  /** Clients hear what was kept from them. */
  release(): void {
    for (const client of this.#held) client.uncork();
    this.#held.clear();
  }

  #watch(client: net.Socket, upstream: net.Socket): void {
    let highest = 0;
    let last = Infinity;
    client.on(
      'data',
      frames(PREFACE_BYTES, ({ type, stream }) => {
        if (type !== HEADERS) return;
        highest = Math.max(highest, stream);
        this.requests += 1;
      }),
    );
    upstream.on(
      'data',
      frames(0, ({ type, payload }) => {
        if (type === RST_STREAM) this.resets += 1;
        if (type !== GOAWAY) return;
        last = Math.min(last, payload.readUInt32BE(0) & 0x7fff_ffff);
        if (this.#held.has(client)) return;
        this.#held.add(client);
        // It is listened to before it is passed on.
        client.cork();
      }),
    );
    client.once('close', () => {
      // Streams of clients have odd numbers.
      if (highest > last) this.refused += (highest - last) / 2;
    });
  }
}

/** Calls `seen` for each frame in what comes, after `skip` bytes. */
function frames(skip: number, seen: (frame: Frame) => void): (chunk: Buffer) => void {
  let rest = Buffer.alloc(0);
  let toSkip = skip;
  return (chunk) => {
    rest = Buffer.concat([rest, chunk.subarray(toSkip)]);
    toSkip = Math.max(0, toSkip - chunk.length);
    while (rest.length >= FRAME_HEAD_BYTES) {
      const end = FRAME_HEAD_BYTES + rest.readUIntBE(0, 3);
      if (rest.length < end) return;
      seen({
        type: rest[3]!,
        stream: rest.readUInt32BE(5) & 0x7fff_ffff,
        payload: rest.subarray(FRAME_HEAD_BYTES, end),
      });
      rest = rest.subarray(end);
    }
  };
}
