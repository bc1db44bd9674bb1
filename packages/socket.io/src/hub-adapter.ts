import {
  ClusterAdapterWithHeartbeat,
  type ClusterMessage,
  type ClusterResponse,
  MessageType,
} from 'socket.io-adapter';
import type { HubChannels } from '@nestjs-cluster/shared/internal';
import { decodeJson, encodeJson } from './json-payload.js';

/** The part of Socket.IO's namespaces that this package uses. */
export interface Namespace {
  readonly name: string;
}

/**
 * The adapter of one namespace. A worker handles its own message when the hub echoes it, so all
 * workers handle messages in one order.
 */
export class HubAdapter extends ClusterAdapterWithHeartbeat {
  constructor(
    nsp: Namespace,
    private readonly channels: HubChannels,
    channel: string,
    private readonly warn: (message: string) => void,
  ) {
    super(nsp, {});
    channels.join(channel, this.uid, {
      // Runs one microtask later, as the continuation of `doPublish()` does, to keep the order. So
      // an error of a listener of `serverSideEmit()` does not reach the connection to the hub.
      said: (body) =>
        queueMicrotask(() => {
          const message = decodeJson(body) as ClusterMessage;
          if (message.type !== MessageType.BROADCAST) this.onMessage(message);
          else void this.#sending(() => this.onMessage(message));
        }),
      left: (uid) => this.onMessage({ type: MessageType.ADAPTER_CLOSE, uid, nsp: nsp.name }),
      joined: () => super.init(),
    });
  }

  /** Does nothing, because `joined()` calls `init()` of the base class once this adapter gets messages of others. */
  override init(): void {}

  override close(): void {
    super.close();
    this.channels.part(this.uid);
  }

  override broadcast(...packet: Parameters<ClusterAdapterWithHeartbeat['broadcast']>) {
    return this.#sending(() => super.broadcast(...packet));
  }

  /** Nobody handles an error of a call that sends. A client may choose data that cannot be encoded. */
  #sending(send: () => Promise<void> | void): Promise<void> {
    return new Promise<void>((sent) => sent(send())).catch((error: unknown) =>
      this.warn(`Socket.IO could not send a message: ${String(error)}`),
    );
  }

  /** Resolves with the echo, so the base class sends to its own clients in the common order. */
  protected override doPublish(message: ClusterMessage): Promise<string> {
    return new Promise((resolve) =>
      this.channels.say(this.uid, encodeJson(message), { echo: () => resolve('') }),
    );
  }

  protected override async doPublishResponse(to: string, response: ClusterResponse): Promise<void> {
    this.channels.say(this.uid, this.#encodeResponse(response), { to });
  }

  /** Leaves out data that is not JSON, because `fetchSockets()` in another worker needs an answer in any case. */
  #encodeResponse(response: ClusterResponse): Buffer {
    if (response.type !== MessageType.FETCH_SOCKETS_RESPONSE) return encodeJson(response);
    try {
      return encodeJson(response);
    } catch {
      const given = response.data.sockets as readonly { readonly data: unknown }[];
      const sockets = given.map((each) => (this.#isJson(each) ? each : { ...each, data: {} }));
      return encodeJson({ ...response, data: { ...response.data, sockets } });
    }
  }

  #isJson(socket: { readonly data: unknown }): boolean {
    try {
      encodeJson(socket);
      return true;
    } catch (error) {
      this.warn(
        `socket.data of a client is not JSON, so other workers see it empty: ${(error as Error).message.split('\n')[0]}`,
      );
      return false;
    }
  }
}
