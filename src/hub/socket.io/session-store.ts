import { createHash } from 'node:crypto';
import type { BroadcastOptions, Session } from 'socket.io-adapter';
import type { HubChannels } from '../client/hub-channels.js';
import type { HubClient } from '../client/hub-client.js';
import { decodeJson, encodeJson } from '../client/json-payload.js';
import type { PrivateIds } from './private-ids.js';

export type SessionToPersist = Omit<Session, 'missedPackets'>;

type Taken = Session & { readonly upTo: string };

/** A broadcast as it is sent to other workers. */
export interface Broadcast {
  readonly opts: {
    readonly rooms: string[];
    readonly except: string[];
    readonly flags?: BroadcastOptions['flags'];
  };
  readonly packet: { readonly type: number; readonly id?: number; readonly data: unknown[] };
}

const CACHE = 'socket.io sessions';
const KEEP_MS = 1_000;

/** Maximum wait for the hub's answer, in ms. A longer wait is useless, because a new hub has no sessions. */
const TAKE_MS = 5_000;

/** The maximum length of a client's offset. The hub's offsets are shorter. */
const MAX_OFFSET = 64;

/** The maximum length of a room's name in a tag. Longer names are hashed. */
const MAX_ROOM = 64;

/** Maximum number of sessions that are taken at a time. Beyond it, clients start new sessions. */
const MAX_TAKING = 1_000;

/** The tags of rooms in the hub. Clients may choose rooms, so each room has a tag of its own. */
export function tagsOf(rooms: Iterable<unknown>): string[] {
  return Array.from(rooms, (room) =>
    typeof room === 'string' && room.length <= MAX_ROOM
      ? `=${room}`
      : `#${createHash('sha256')
          .update(`${typeof room} ${String(room)}`)
          .digest('base64url')}`,
  );
}

/**
 * Sessions of clients that may come back to any worker, and the packets that these clients miss.
 */
export class SessionStore {
  readonly #taking = new Set<string>();

  constructor(
    private readonly hub: HubClient,
    private readonly channels: HubChannels,
    readonly ids: PrivateIds,
    readonly maxBytes: number,
    private readonly warn: (message: string) => void,
  ) {}

  /** Without a hub, or if the data is not JSON, the client starts a new session later. */
  keep(channel: string, session: SessionToPersist, ttlMs: number): void {
    this.#keep(channel, session, ttlMs).catch(() => {});
  }

  /** Async, because an error thrown while Socket.IO closes a connection would end the process. */
  async #keep(channel: string, session: SessionToPersist, ttlMs: number): Promise<void> {
    const body = this.encodeData(session);
    if (body === undefined) return;
    const at = placeOf(channel, session.pid);
    const question = { op: 'set', ...at, form: 'j', ttlMs, maxBytes: this.maxBytes } as const;
    await this.hub.ask(question, KEEP_MS, body);
  }

  /** @returns `undefined` if the data is not JSON. */
  encodeData(session: { readonly data: unknown }): Buffer | undefined {
    try {
      return encodeJson(session);
    } catch (error) {
      this.warn(
        `socket.data of a client is not JSON: other workers see it empty, and a client that has it cannot be recovered: ${(error as Error).message.split('\n')[0]}`,
      );
      return undefined;
    }
  }

  /**
   * Takes a session and the packets that its client missed. If several try, one worker gets them.
   *
   * @param uid the name of a member of the channel.
   * @param pid unchecked text from the client, like `offset`.
   * @param releaseOld makes the old worker store the session, if the client is connected there.
   * @returns `undefined` if the client has to start a new session.
   */
  async take(
    channel: string,
    uid: string,
    pid: string,
    offset: string,
    releaseOld: () => Promise<void>,
  ): Promise<Taken | undefined> {
    const isPossible = offset.length <= MAX_OFFSET && this.#taking.size < MAX_TAKING;
    if (!isPossible || this.#taking.has(pid) || !this.ids.isOwn(channel, pid)) return undefined;
    this.#taking.add(pid);
    try {
      return await this.#take(placeOf(channel, pid), uid, offset, releaseOld);
    } finally {
      this.#taking.delete(pid);
    }
  }

  async #take(
    at: ReturnType<typeof placeOf>,
    uid: string,
    offset: string,
    releaseOld: () => Promise<void>,
  ): Promise<Taken | undefined> {
    const ask = () => this.hub.askUntil({ op: 'get', ...at }, TAKE_MS);
    let answer = await ask();
    if (answer?.header.t === 'miss') answer = await releaseOld().then(ask);
    if (answer?.header.t !== 'hit') return undefined;
    const session = decodeJson(answer.body) as SessionToPersist;
    const missed = await this.channels.missed(uid, offset, tagsOf(session.rooms));
    if (missed === undefined) return undefined;
    const { header } = await this.hub.ask({ op: 'delete', ...at }, KEEP_MS);
    if (header.t !== 'done' || header.changed === 0) return undefined; // another worker has taken the session
    const missedPackets = missed.map((each) => {
      const { packet } = (decodeJson(each.body) as { data: Broadcast }).data;
      return [...packet.data, each.offset];
    });
    return { ...session, missedPackets, upTo: missed.at(-1)?.offset ?? offset };
  }
}

/** A signed id contains no space, so each key belongs to one id and one channel. */
function placeOf(channel: string, pid: string): { cache: string; key: string } {
  return { cache: CACHE, key: `${pid} ${channel}` };
}
