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

/** The used part of a namespace of Socket.IO. */
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

/** In Socket.IO's protocol, the type of a packet with an event. */
const EVENT = 2;

/** Asks other workers to close a client that they still take for connected. */
const SURRENDER = 'nestjs-cluster surrender';

/** Tells the worker of a socket that the room with its id has a member in another worker. */
const JOINED = 'nestjs-cluster joined';

/** The form of a socket's id, which is also the name of a room. */
const SOCKET_ID = /^[\w-]{20}$/;

/** The client does not wait longer for a busy worker. */
const SURRENDER_MS = 1_000;

/**
 * The adapter of one namespace. Its own messages take effect at the place of their echo, so all workers
 * see one order. That is why one offset tells which messages a client has.
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
  ) {
    super(nsp, {});
    nsp.on(SURRENDER, (pid, done) => {
      this.#surrender(pid);
      done();
    });
    nsp.on(JOINED, (room) => nsp.sockets.has(room) && this.#shared.add(room));
    channels.join(channel, this.uid, {
      // One microtask later, like the continuation of `doPublish()`, to keep the order. Then an error of
      // a listener of `serverSideEmit()` does not reach the connection to the hub either.
      said: (body, _from, offset) =>
        queueMicrotask(() => {
          const message = decodeJson(body) as ClusterMessage;
          if (offset !== undefined)
            this.#recovering.note(offset, (message as { data: Broadcast }).data);
          this.onMessage(message, offset);
        }),
      left: (uid) => this.onMessage({ type: MessageType.ADAPTER_CLOSE, uid, nsp: nsp.name }),
      joined: () => super.init(),
    });
  }

  /** It announces itself in `joined()`, once it gets the messages of the others. */
  override init(): void {}

  override close(): void {
    super.close();
    this.channels.part(this.uid);
  }

  /** Resolves with the echo, so the base class sends to its own clients at the message's place in the order. */
  protected override doPublish(message: ClusterMessage): Promise<string> {
    const broadcast =
      message.type === MessageType.BROADCAST && message.data.requestId === undefined
        ? (message.data as Broadcast)
        : undefined;
    const keep = broadcast && this.#keeping(broadcast);
    // Other workers do not need events for one socket of this worker, but the hub keeps them.
    const [room, ...rooms] = broadcast?.opts.rooms ?? [];
    const isOwn = rooms.length === 0 && this.nsp.sockets.has(room!) && !this.#shared.has(room!);
    return new Promise((resolve, reject) => {
      const echo = (offset: string | undefined): void => {
        if (offset !== undefined) this.#recovering.note(offset, broadcast!);
        // After an error the base class sends to its own clients without an offset.
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

  /** `fetchSockets()` of other workers waits for this answer, so data that is not JSON is left out. */
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

  /** @param pid text from the client, like the offset. */
  override async restoreSession(pid: string, offset: string): Promise<Session> {
    const client = this.#recovering.begin();
    const session = await this.sessions
      .take(this.channel, this.uid, pid, offset, () => this.#surrendered(pid))
      .catch(() => undefined);
    client.session = session;
    if (session === undefined) this.#recovering.end(client);
    return (session && { ...session, missedPackets: [] }) as Session; // `undefined` starts a new session
  }

  override addAll(id: string, rooms: Set<Room>): void {
    void super.addAll(id, rooms);
    for (const room of rooms) {
      const isOther = room !== id && SOCKET_ID.test(room) && !this.nsp.sockets.has(room);
      if (isOther) void this.serverSideEmit([JOINED, room]);
    }
    const socket = this.nsp.sockets.get(id);
    // The client gets the id after this call.
    if (rooms.has(id) && socket?.pid !== undefined) {
      socket.pid = this.sessions.ids.sign(this.channel, socket.pid);
    }
    const client = socket && this.#recovering.take(id);
    if (client === undefined) return;
    this.#shared.add(id); // members that joined its room told its former worker, not this one
    // After its CONNECT: Socket.IO's client buffers packets before it, and would get them twice if it
    // lost the connection in between.
    queueMicrotask(() => {
      const packets = client.packetsFor(this.sids.get(id) ?? new Set());
      for (const data of packets) socket!.packet({ type: EVENT, data });
    });
  }

  override delAll(id: string): void {
    super.delAll(id);
    this.#shared.delete(id);
    const client = this.#recovering.take(id);
    // Its client was gone, or refused, before it was connected. It may come back.
    if (client !== undefined) this.persistSession(client.session!);
  }

  get #recovery(): { readonly maxDisconnectionDuration: number } | undefined {
    return this.nsp.server._opts.connectionStateRecovery;
  }

  /** Like Socket.IO's own adapters, it does not keep packets with an acknowledgement. */
  #keeping({ packet, opts }: Broadcast): SayOptions['keep'] {
    const isPlain =
      packet.type === EVENT && packet.id === undefined && opts.flags?.volatile === undefined;
    if (!isPlain || !this.#recovery) return undefined;
    const { maxDisconnectionDuration: forMs } = this.#recovery;
    const { maxBytes } = this.sessions;
    return { forMs, maxBytes, tags: tagsOf(opts.rooms), except: tagsOf(opts.except) };
  }

  /** Resolves once no worker takes that client for connected. */
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
