import http2 from 'node:http2';
import { onTestFinished } from 'vitest';

export interface Http2Answer {
  readonly status: number | undefined;
  readonly body: string;
  /** Its stream ended as it should: not reset, not cut. */
  readonly complete: boolean;
  /** Set where it was not processed, and may be sent again: by the server, or by Node itself. */
  readonly refused?: true;
}

/** One session of HTTP/2, in clear text or with TLS as its URL says. */
export class Http2Client {
  /** Resolves with the error code of the GOAWAY frame. */
  readonly goaway: Promise<number>;
  readonly closed: Promise<void>;
  /** The text of all response bodies received so far. */
  text = '';
  readonly #session: http2.ClientHttp2Session;

  private constructor(session: http2.ClientHttp2Session) {
    this.#session = session;
    this.goaway = new Promise((resolve) => session.once('goaway', (code) => resolve(code)));
    this.closed = new Promise((resolve) => session.once('close', resolve));
    session.on('error', () => {}); // requests tell
  }

  static open(base: string): Promise<Http2Client> {
    const session = http2.connect(base, { rejectUnauthorized: false });
    onTestFinished(() => session.destroy());
    const client = new Http2Client(session);
    return new Promise((resolve, reject) => {
      session.once('remoteSettings', () => resolve(client));
      session.once('error', reject);
      session.once('close', () => reject(new Error('closed at once')));
    });
  }

  /** Never rejects: the answer tells. */
  get(path: string): Promise<Http2Answer> {
    return new Promise((resolve) => {
      const stream = this.#session.request({ ':path': path });
      let status: number | undefined;
      let body = '';
      let complete = false;
      stream.setEncoding('utf8');
      stream.on('response', (headers) => (status = headers[':status']));
      stream.on('data', (chunk: string) => {
        body += chunk;
        this.text += chunk;
      });
      stream.on('end', () => (complete = true));
      stream.on('error', () => (complete = false));
      stream.on('close', () => {
        const answer = { status, body, complete: complete && stream.rstCode === 0 };
        const refused = stream.rstCode === http2.constants.NGHTTP2_REFUSED_STREAM;
        resolve(refused ? { ...answer, refused } : answer);
      });
    });
  }

  destroy(): void {
    this.#session.destroy();
  }
}
