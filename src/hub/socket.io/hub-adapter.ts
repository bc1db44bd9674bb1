import { setTimeout as delay } from 'node:timers/promises';
import {
  ClusterAdapterWithHeartbeat,
  type ClusterMessage,
  type ClusterResponse,
  MessageType,
  type Room,
  type Session,
} from 'socket.io-adapter';
import type { HubChannels, Saying } from '../client/hub-channels.js';
import { LateComers } from './late-packets.js';
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

/** What is used of a namespace of Socket.IO. */
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

/** Of the protocol of Socket.IO. */
const EVENT = 2;

/** Asks for the session of a client whose worker has not noticed that it is gone. */
const SURRENDER = 'nestjs-cluster surrender';

/** Tells the worker of a socket that the room of its id has a member elsewhere. */
const JOINED = 'nestjs-cluster joined';

/** Rooms that may be those of a socket. */
const SOCKET_ID = /^[\w-]{20}$/;

/** A worker that is busy for longer does not hold up the client. */
const SURRENDER_MS = 1_000;

/**
 * The adapter of one namespace. Its own messages take effect at the place of their echo: all workers
 * see one order, by which a client's offset says what it has.
 */
export class HubAdapter extends ClusterAdapterWithHeartbeat {
  declare readonly nsp: Namespace;
  readonly #late = new LateComers();
  /** Sockets of this worker whose own rooms may have members in others. */
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
      // One microtask later, as the continuation of `doPublish()`: the order stays. What a listener
      // of `serverSideEmit()` throws does not concern the connection to the hub.
      said: (body, _from, offset) =>
        queueMicrotask(() => {
          const message = decodeJson(body) as ClusterMessage;
          if (offset !== undefined) this.#late.note(offset, (message as { data: Broadcast }).data);
          this.onMessage(message, offset);
        }),
      left: (uid) => this.onMessage({ type: MessageType.ADAPTER_CLOSE, uid, nsp: nsp.name }),
      joined: () => super.init(),
    });
  }

  /** It announces itself once it hears the others. */
  override init(): void {}

  override close(): void {
    super.close();
    this.channels.part(this.uid);
  }

  /** Resolves with the echo: what the base class does here after it, too, stands where others do it. */
  protected override doPublish(message: ClusterMessage): Promise<string> {
    const broadcast =
      message.type === MessageType.BROADCAST && message.data.requestId === undefined
        ? (message.data as Broadcast)
        : undefined;
    const keep = broadcast && this.#keeping(broadcast);
    // Events of one socket of this worker need nobody else, but have to be kept.
    const [room, ...rooms] = broadcast?.opts.rooms ?? [];
    const isOwn = rooms.length === 0 && this.nsp.sockets.has(room!) && !this.#shared.has(room!);
    return new Promise((resolve, reject) => {
      const echo = (offset: string | undefined): void => {
        if (offset !== undefined) this.#late.note(offset, broadcast!);
        // The base class goes on after an error, and sends no offset.
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

  /** Those who ask for the sockets wait for this answer: data that is not JSON is left out. */
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

  /** @param pid whatever the client has sent, and so is the offset. */
  override async restoreSession(pid: string, offset: string): Promise<Session> {
    const late = this.#late.begin();
    const session = await this.sessions
      .take(this.channel, this.uid, pid, offset, () => this.#surrendered(pid))
      .catch(() => undefined);
    late.session = session;
    if (session === undefined) this.#late.end(late);
    return (session && { ...session, missedPackets: [] }) as Session; // none: its client begins anew
  }

  override addAll(id: string, rooms: Set<Room>): void {
    void super.addAll(id, rooms);
    for (const room of rooms) {
      const isOther = room !== id && SOCKET_ID.test(room) && !this.nsp.sockets.has(room);
      if (isOther) void this.serverSideEmit([JOINED, room]);
    }
    const socket = this.nsp.sockets.get(id);
    // Its client is told of the id behind this.
    if (rooms.has(id) && socket?.pid !== undefined) {
      socket.pid = this.sessions.ids.sign(this.channel, socket.pid);
    }
    const late = socket && this.#late.take(id);
    if (late === undefined) return;
    this.#shared.add(id); // those who joined its room have told the worker that it comes from
    // Behind its CONNECT: Socket.IO's client keeps what comes before, and if it is cut off in between
    // it hears that twice.
    queueMicrotask(() => {
      const packets = late.packetsFor(this.sids.get(id) ?? new Set());
      for (const data of packets) socket!.packet({ type: EVENT, data });
    });
  }

  override delAll(id: string): void {
    super.delAll(id);
    this.#shared.delete(id);
    const late = this.#late.take(id);
    // Its client was gone, or refused, before it was connected. It may come once more.
    if (late !== undefined) this.persistSession(late.session!);
  }

  get #recovery(): { readonly maxDisconnectionDuration: number } | undefined {
    return this.nsp.server._opts.connectionStateRecovery;
  }

  /** As Socket.IO's own adapters do: an acknowledgement cannot be kept. */
  #keeping({ packet, opts }: Broadcast): Saying['keep'] {
    const isPlain =
      packet.type === EVENT && packet.id === undefined && opts.flags?.volatile === undefined;
    if (!isPlain || !this.#recovery) return undefined;
    const { maxDisconnectionDuration: forMs } = this.#recovery;
    const { maxBytes } = this.sessions;
    return { forMs, maxBytes, tags: tagsOf(opts.rooms), except: tagsOf(opts.except) };
  }

  /** Once no worker takes that client for connected any more. */
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
