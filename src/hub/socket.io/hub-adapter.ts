import { setTimeout as delay } from 'node:timers/promises';
import {
  ClusterAdapterWithHeartbeat,
  type ClusterMessage,
  type ClusterResponse,
  MessageType,
  type Room,
  type Session,
} from 'socket.io-adapter';
import type { HubChannels, SayOptions } from '../client/hub-channels.js';
import { RecoveringClients } from './recovering-clients.js';
import { decodeJson, encodeJson } from '../client/json-payload.js';
import {
  type Broadcast,
  type SessionStore,
  type SessionToPersist,
  tagsOf,
} from './session-store.js';

interface ServerSocket {
  pid?: string;
  readonly conn: { close(discard: boolean): void };
  packet(packet: { readonly type: number; readonly data: unknown[] }): void;
}

/** The part of Socket.IO's namespaces that this package uses. */
export interface Namespace {
  readonly name: string;
  readonly sockets: ReadonlyMap<string, ServerSocket>;
  readonly server: {
    readonly _opts: {
      readonly connectionStateRecovery?: { readonly maxDisconnectionDuration: number };
    };
  };
  on(event: string, listener: (about: string, done: () => void) => unknown): void;
}

/** In Socket.IO's protocol, the type of a packet that carries an event. */
const EVENT = 2;

/** Asks other workers to close the connections of a client that has come back to this worker. */
const SURRENDER = 'nestjs-cluster surrender';

/** Tells a socket's worker that the room with the socket's id has a member in another worker. */
const JOINED = 'nestjs-cluster joined';

/** The form of a socket's id. Each socket has a room of its own, named by this id. */
const SOCKET_ID = /^[\w-]{20}$/;

/** Maximum wait for other workers to close the former connection of a client, in ms. */
const SURRENDER_MS = 1_000;

/**
 * The adapter of one namespace. A worker handles its own message when the hub echoes it, so all
 * workers handle messages in one order. So one offset tells which messages a client has.
 */
export class HubAdapter extends ClusterAdapterWithHeartbeat {
  declare readonly nsp: Namespace;
  readonly #recovering = new RecoveringClients();
  /** Sockets of this worker whose own rooms may have members in other workers. */
  readonly #shared = new Set<Room>();

  constructor(
    nsp: Namespace,
    private readonly channels: HubChannels,
    private readonly sessions: SessionStore,
    private readonly channel: string,
    private readonly warn: (message: string) => void,
  ) {
    super(nsp, {});
    nsp.on(SURRENDER, (pid, done) => {
      this.#surrender(pid);
      done();
    });
    nsp.on(JOINED, (room) => nsp.sockets.has(room) && this.#shared.add(room));
    channels.join(channel, this.uid, {
      // Runs one microtask later, as the continuation of `doPublish()` does, to keep the order. So
      // an error of a listener of `serverSideEmit()` does not reach the connection to the hub.
      said: (body, _from, offset) =>
        queueMicrotask(() => {
          const message = decodeJson(body) as ClusterMessage;
          if (offset !== undefined)
            this.#recovering.note(offset, (message as { data: Broadcast }).data);
          if (message.type !== MessageType.BROADCAST) this.onMessage(message, offset);
          else void this.#sending(() => this.onMessage(message, offset));
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
    const broadcast =
      message.type === MessageType.BROADCAST && message.data.requestId === undefined
        ? (message.data as Broadcast)
        : undefined;
    const keep = broadcast && this.#keeping(broadcast);
    // An event for one socket of this worker goes to no other worker, but the hub keeps it.
    const [room, ...rooms] = broadcast?.opts.rooms ?? [];
    const isOwn = rooms.length === 0 && this.nsp.sockets.has(room!) && !this.#shared.has(room!);
    return new Promise((resolve, reject) => {
      const echo = (offset: string | undefined): void => {
        if (offset !== undefined) this.#recovering.note(offset, broadcast!);
        // If this promise rejects, the base class sends to its own clients without an offset.
        else if (keep !== undefined) return reject(new Error('the hub has not kept it'));
        resolve(offset ?? '');
      };
      const to = isOwn ? this.uid : undefined;
      this.channels.say(this.uid, encodeJson(message), { to, keep, echo });
    });
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
      const sockets = (response.data.sockets as SessionToPersist[]).map((each) =>
        this.sessions.encodeData(each) === undefined ? { ...each, data: {} } : each,
      );
      return encodeJson({ ...response, data: { ...response.data, sockets } });
    }
  }

  override persistSession({ sid, pid, rooms, data }: SessionToPersist): void {
    const { maxDisconnectionDuration } = this.#recovery!;
    this.sessions.keep(this.channel, { sid, pid, rooms, data }, maxDisconnectionDuration);
  }

  /** @param pid unchecked text from the client, like `offset`. */
  override async restoreSession(pid: string, offset: string): Promise<Session> {
    const client = this.#recovering.begin();
    const session = await this.sessions
      .take(this.channel, this.uid, pid, offset, () => this.#surrendered(pid))
      .catch(() => undefined);
    client.session = session;
    if (session === undefined) this.#recovering.end(client);
    // If the result is `undefined`, Socket.IO starts a new session.
    return (session && { ...session, missedPackets: [] }) as Session;
  }

  override addAll(id: string, rooms: Set<Room>): void {
    void super.addAll(id, rooms);
    for (const room of rooms) {
      const isOther = room !== id && SOCKET_ID.test(room) && !this.nsp.sockets.has(room);
      if (isOther) void this.serverSideEmit([JOINED, room]);
    }
    const socket = this.nsp.sockets.get(id);
    // Signs the id here, because Socket.IO sends it to the client after this call.
    if (rooms.has(id) && socket?.pid !== undefined) {
      socket.pid = this.sessions.ids.sign(this.channel, socket.pid);
    }
    const client = socket && this.#recovering.take(id);
    if (client === undefined) return;
    this.#shared.add(id); // other workers told only its former worker of members in its room
    // Sends missed packets after CONNECT. Socket.IO's client buffers packets that come before
    // CONNECT, and would get them twice if it lost the connection in between.
    queueMicrotask(() => {
      const packets = client.packetsFor(this.sids.get(id) ?? new Set());
      for (const data of packets) void this.#sending(() => socket!.packet({ type: EVENT, data }));
    });
  }

  override delAll(id: string): void {
    super.delAll(id);
    this.#shared.delete(id);
    const client = this.#recovering.take(id);
    // Keeps the session of a client that left, or was refused, before it was connected.
    if (client !== undefined) this.persistSession(client.session!);
  }

  get #recovery(): { readonly maxDisconnectionDuration: number } | undefined {
    return this.nsp.server._opts.connectionStateRecovery;
  }

  /** Like Socket.IO's own adapters, this adapter keeps no packet that asks for an acknowledgement. */
  #keeping({ packet, opts }: Broadcast): SayOptions['keep'] {
    const isPlain =
      packet.type === EVENT && packet.id === undefined && opts.flags?.volatile === undefined;
    if (!isPlain || !this.#recovery) return undefined;
    const { maxDisconnectionDuration: forMs } = this.#recovery;
    const { maxBytes } = this.sessions;
    return { forMs, maxBytes, tags: tagsOf(opts.rooms), except: tagsOf(opts.except) };
  }

  /** Resolves when no worker considers the client connected, or after {@link SURRENDER_MS}. */
  async #surrendered(pid: string): Promise<void> {
    this.#surrender(pid);
    await Promise.race([
      new Promise((done) => void this.serverSideEmit([SURRENDER, pid, done])),
      delay(SURRENDER_MS, undefined, { ref: false }),
    ]);
  }

  #surrender(pid: string): void {
    for (const socket of this.nsp.sockets.values()) {
      if (socket.pid === pid) socket.conn.close(true);
    }
  }
}
