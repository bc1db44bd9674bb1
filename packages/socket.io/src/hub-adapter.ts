import type { HubChannels } from '@nestjs-cluster/shared/internal';
import { extension } from 'nestjs-cluster/extension';
import {
  ClusterAdapterWithHeartbeat,
  type ClusterMessage,
  type ClusterResponse,
  MessageType,
} from 'socket.io-adapter';
import { decodeJson, encodeJson } from './json-payload.js';

/** The part of Socket.IO's namespaces that this package uses. */
export interface Namespace {
  readonly name: string;
}

/**
 * The adapter of one namespace. A worker handles its own message when the hub echoes it, so all
 * workers handle messages in the same order.
 */
export class HubAdapter extends ClusterAdapterWithHeartbeat {
  constructor(
    nsp: Namespace,
    private readonly channels: HubChannels,
    channel: string,
  ) {
    super(nsp, {});
    channels.join(channel, this.uid, {
      // Runs one microtask later, like the continuation of `doPublish()`, to keep the order. Errors
      // of `serverSideEmit()` listeners thus do not reach the connection to the hub.
      said: (body) => {
        const message = decodeJson(body) as ClusterMessage;
        queueMicrotask(() => {
          if (message.type !== MessageType.BROADCAST) this.onMessage(message);
          else void sending(() => this.onMessage(message));
        });
      },
      left: (uid) => this.onMessage({ type: MessageType.ADAPTER_CLOSE, uid, nsp: nsp.name }),
      joined: () => super.init(),
    });
  }

  /** Does nothing: `joined()` calls `super.init()` later, once other workers' messages arrive. */
  override init(): void {}

  override close(): void {
    super.close();
    this.channels.part(this.uid);
  }

  override broadcast(...packet: Parameters<ClusterAdapterWithHeartbeat['broadcast']>) {
    return sending(() => super.broadcast(...packet));
  }

  /** Resolves when the echo arrives, so the base class sends to its own clients in the shared order. */
  protected override doPublish(message: ClusterMessage): Promise<string> {
    return new Promise((resolve) =>
      this.channels.say(this.uid, encodeJson(message), { echo: () => resolve('') }),
    );
  }

  protected override async doPublishResponse(to: string, response: ClusterResponse): Promise<void> {
    this.channels.say(this.uid, encodeResponse(response), { to });
  }
}

/** Logs an error, because Socket.IO does not handle it. A client may have sent data that cannot be encoded. */
async function sending(send: () => Promise<void> | void): Promise<void> {
  try {
    await send();
  } catch (error) {
    extension()?.warn(`Socket.IO could not send a message: ${String(error)}`);
  }
}

/** Omits data that is not JSON, because `fetchSockets()` in another worker waits for the answer. */
function encodeResponse(response: ClusterResponse): Buffer {
  if (response.type !== MessageType.FETCH_SOCKETS_RESPONSE) return encodeJson(response);
  try {
    return encodeJson(response);
  } catch {
    const given = response.data.sockets as readonly { readonly data: unknown }[];
    const sockets = given.map((socket) => (isJson(socket) ? socket : { ...socket, data: {} }));
    return encodeJson({ ...response, data: { ...response.data, sockets } });
  }
}

function isJson(socket: { readonly data: unknown }): boolean {
  try {
    encodeJson(socket);
    return true;
  } catch {
    extension()?.warn("cannot encode a client's socket.data as JSON; other workers see {}");
    return false;
  }
}
