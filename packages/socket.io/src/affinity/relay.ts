import {
  Agent,
  type AgentOptions,
  type ClientRequest,
  type IncomingMessage,
  request as httpRequest,
  type ServerResponse,
} from 'node:http';
import { createConnection, type NetConnectOpts, type Socket } from 'node:net';
import { type Duplex, pipeline } from 'node:stream';
import type { RelayLimit } from '../../../../src/contract/snapshot/index.js';
import { RELEASE } from './relay-server.js';
import { hasBody, headOf, relayedHeaders, requestHeaders } from './request-head.js';

/** Options for idle connections to an owner. Each connection takes a descriptor in both workers. */
const IDLE: AgentOptions = { keepAlive: true, maxFreeSockets: 8, timeout: 5_000 };

/** Relays requests to the workers that own their sessions. */
export class Relay {
  readonly #kept: Agent;
  readonly #single: Agent;
  /** The agent for releases in a drain. One connection to each owner is enough for all releases. */
  readonly #releases: Agent;
  /** One function for each open request, which ends that request without loss. */
  readonly #open = new Set<() => void>();

  /** @param limit counts the connections to owners. Above the limit, requests are refused. */
  constructor(private readonly limit?: RelayLimit) {
    this.#kept = this.#agentWith(IDLE);
    this.#single = this.#agentWith({ keepAlive: false });
    this.#releases = this.#agentWith({ ...IDLE, maxSockets: 1 });
  }

  get open(): Iterable<() => void> {
    return this.#open;
  }

  /**
   * Only a POST may have a body. Node would send the body of a GET without its length, and the
   * owner would read that body as another client's request. A POST's connection is not reused.
   *
   * @param gone called if the owner is gone before the client got an answer.
   */
  request(
    path: string,
    request: IncomingMessage,
    response: ServerResponse,
    gone: () => void,
  ): void {
    const { method, url } = request;
    const isPost = method === 'POST';
    if (!isPost && hasBody(request)) return refuse(response);
    if (this.limit?.admits() === false) return refuse(response, 503, 'Service unavailable');
    const options = { socketPath: path, path: url, agent: isPost ? this.#single : this.#kept };
    let relayed: ClientRequest;
    try {
      relayed = httpRequest({ ...options, method, headers: requestHeaders(request.headers) });
    } catch {
      return refuse(response); // Node receives some paths that it refuses to send
    }
    const release = (): void => {
      httpRequest({ ...options, agent: this.#releases, headers: { [RELEASE]: '1' } })
        .on('response', (answer) => answer.resume())
        .on('error', () => {})
        .end();
    };
    if (method === 'GET') this.#open.add(release);
    relayed.on('response', (answer) => {
      // The owner is at its limit of connections. The client's connection is closed too, so that
      // this process does not reach its own limit.
      if (answer.statusCode === 503) response.setHeader('Connection', 'close');
      response.writeHead(answer.statusCode!, relayedHeaders(answer.headers));
      pipeline(answer, response, () => {});
    });
    relayed.on('error', () => {
      if (!response.headersSent && !response.destroyed) gone();
      else response.destroy();
    });
    response.once('close', () => {
      this.#open.delete(release);
      relayed.destroy();
    });
    if (isPost) request.pipe(relayed);
    else relayed.end();
  }

  /** Relays an upgraded connection until it closes. */
  upgrade(
    path: string,
    request: IncomingMessage,
    client: Duplex,
    head: Buffer,
    gone: () => void,
  ): void {
    if (this.limit?.admits() === false) return void client.destroy();
    const owner = this.#connect({ path, allowHalfOpen: true });
    const leave = (): void => void owner.end();
    owner.once('error', gone);
    client.once('error', () => owner.destroy());
    owner.once('connect', () => {
      owner.off('error', gone);
      if (client.destroyed) return void owner.destroy();
      owner.on('error', () => client.destroy());
      owner.write(headOf(request));
      owner.write(head);
      this.#open.add(leave);
      client.on('close', () => {
        this.#open.delete(leave);
        owner.destroy();
      });
      // Node notices that the client has ended the connection only while the client's data is read.
      owner.on('close', () => client.end().resume());
      client.pipe(owner);
      owner.pipe(client);
    });
  }

  #agentWith(options: AgentOptions): Agent {
    const connect = (to: object): Socket => this.#connect(to as NetConnectOpts);
    return Object.assign(new Agent(options), { createConnection: connect });
  }

  #connect(to: NetConnectOpts): Socket {
    const socket = createConnection(to);
    this.limit?.count(socket);
    return socket;
  }
}

/** Answers with an error in the form of Engine.IO's errors. The rest of the request is not read. */
function refuse(response: ServerResponse, status = 400, message = 'Bad request'): void {
  const headers = { 'Content-Type': 'application/json', Connection: 'close' };
  response.writeHead(status, headers).end(JSON.stringify({ code: 3, message }));
}
