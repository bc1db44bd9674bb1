import type { Server } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse, Http2Session } from 'node:http2';

/** Told of each HTTP/2 request as it begins; returns what is to be called when it is over. */
export type Http2Observer = (
  request: Http2ServerRequest,
  response: Http2ServerResponse,
) => () => void;

/** The HTTP/2 sessions of a server: Node's channels for HTTP/1.1 know nothing of them. */
export class Http2Sessions {
  readonly #sessions = new Set<Http2Session>();

  /** A server of HTTP/1.1 alone has no session and costs nothing. */
  follow(server: Server, observe: Http2Observer): void {
    const onRequest = (request: unknown, response: unknown): void => {
      // A server that speaks both tells of both here.
      if ((request as Http2ServerRequest).httpVersionMajor < 2) return;
      const over = observe(request as Http2ServerRequest, response as Http2ServerResponse);
      (response as Http2ServerResponse).once('close', over);
    };
    server.once('session', () => server.prependListener('request', onRequest));
    server.on('session', (session: Http2Session) => {
      this.#sessions.add(session);
      session.once('close', () => this.#sessions.delete(session));
    });
  }

  /** GOAWAY: what has begun is finished, what is new goes elsewhere. */
  close(): void {
    for (const session of this.#sessions) if (!session.closed) session.close();
  }

  destroy(): void {
    for (const session of this.#sessions) session.destroy();
  }
}
