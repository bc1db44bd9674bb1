import { channel } from 'node:diagnostics_channel';
import { EventEmitter } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Http2Session } from 'node:http2';
import type { Connection, TrackedSocket } from '../../../src/worker/serve/connection.js';
import { RequestTracker } from '../../../src/worker/serve/tracker.js';

const STARTED = channel('http.server.request.start');
const FINISHED = channel('http.server.response.finish');

/** Size of a request on the wire. */
const REQUEST_BYTES = 100;

/** A request and its response, as far as anything looks at them. */
export class FakeExchange {
  readonly request = new EventEmitter() as EventEmitter & IncomingMessage;
  readonly response = {
    headersSent: false,
    shouldKeepAlive: true,
    getHeader: (name: string) => this.#headers.get(name.toLowerCase()),
  } as {
    -readonly [K in keyof ServerResponse]: ServerResponse[K];
  };
  readonly #headers = new Map<string, string>();

  constructor(
    private readonly client: FakeClient,
    headers: IncomingMessage['headers'],
  ) {
    Object.assign(this.request, { headers, method: 'GET', url: '/cats' });
    Object.assign(this.response, { req: this.request });
  }

  /** Whether the client is asked to connect again by the head of the response, as it is now. */
  get asksToClose(): boolean {
    return !this.response.shouldKeepAlive;
  }

  setHeader(name: string, value: string): this {
    this.#headers.set(name.toLowerCase(), value);
    return this;
  }

  /** The head of the response leaves: what it says is said. */
  writeHead(): this {
    this.response.headersSent = true;
    return this;
  }

  /** The app has read the whole body. */
  bodyRead(): void {
    this.request.emit('end');
  }

  /** The response ends; where it asked for that, the connection too. */
  finish({ close = this.asksToClose } = {}): this {
    this.writeHead();
    FINISHED.publish(this.client.message(this));
    if (close) this.client.close();
    return this;
  }
}

/** A client on one connection to a {@link FakeServer}. */
export class FakeClient {
  readonly socket: EventEmitter & { bytesRead: number; bytesWritten: number };
  closed = false;

  constructor(private readonly server: FakeServer) {
    this.socket = Object.assign(new EventEmitter(), {
      bytesRead: 0,
      bytesWritten: 0,
      destroy: () => this.close(),
    });
    server.server.emit('connection', this.socket);
  }

  get connection(): Connection {
    return [...this.server.tracker.connections].find(
      ({ socket }) => (socket as unknown) === this.socket,
    )!;
  }

  message({ request, response }: FakeExchange) {
    return { request, response, socket: this.socket, server: this.server.server };
  }

  /** A request arrives whose bytes the socket has not read before. */
  send(headers: IncomingMessage['headers'] = {}): FakeExchange {
    this.socket.bytesRead += REQUEST_BYTES;
    return this.parse(headers);
  }

  /** A request begins that lay in what the socket had read already. */
  parse(headers: IncomingMessage['headers'] = {}): FakeExchange {
    const exchange = new FakeExchange(this, headers);
    STARTED.publish(this.message(exchange));
    return exchange;
  }

  /** So many requests, one after the other. */
  use(times: number): this {
    for (let i = 0; i < times; i += 1) this.send().finish();
    return this;
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.socket.emit('close');
  }
}

/** An HTTP server without sockets that a tracker follows. */
export class FakeServer {
  readonly server = new EventEmitter() as EventEmitter & Server;
  readonly tracker = new RequestTracker();

  constructor() {
    this.server.on('request', () => {}); // the app's
    this.tracker.follow(this.server);
  }

  connect(): FakeClient {
    return new FakeClient(this);
  }

  /** The client turns to HTTP/2. */
  openSession(client: FakeClient): FakeSession {
    const session = new FakeSession(client.socket as unknown as TrackedSocket);
    this.server.emit('session', session);
    return session;
  }

  stop(): void {
    this.tracker.unfollow();
  }
}

/** An HTTP/2 session that keeps what it was told. */
export class FakeSession extends EventEmitter {
  closed = false;
  destroyed = false;
  readonly goaways: number[][] = [];

  constructor(readonly socket: TrackedSocket) {
    super();
  }

  get handle(): Http2Session {
    return this as unknown as Http2Session;
  }

  goaway(...args: number[]): void {
    this.goaways.push(args);
  }

  close(): void {
    this.closed = true;
  }
}
