import { createHash } from 'node:crypto';
import type { BroadcastOptions, Session } from 'socket.io-adapter';
import type { HubChannels } from '../client/hub-channels.js';
import type { HubClient } from '../client/hub-client.js';
import { decodeJson, encodeJson } from '../client/json-payload.js';
import type { PrivateIds } from './private-ids.js';

export type SessionToPersist = Omit<Session, 'missedPackets'>;

type Taken = Session & { readonly upTo: string };

/** What is sent to other workers. */
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

/** A client that comes back waits rather than begin anew; a hub that is started anew has nothing for it. */
const TAKE_MS = 5_000;

/** More is no offset of the hub. */
const MAX_OFFSET = 64;

/** Longer names of rooms are hashed. */
const MAX_ROOM = 64;

/** Sessions that are being taken at once. Each has the hub asked, and may have all workers asked. */
const MAX_TAKING = 1_000;

/**
 * Rooms by names that the hub takes. A client may have chosen them: no name of one form is a name of
 * another form.
 */
export function tagsOf(rooms: Iterable<unknown>): string[] {
  return Array.from(rooms, (room) =>
    typeof room === 'string' && room.length <= MAX_ROOM
      ? `=${room}`
      : `#${createHash('sha256')
          .update(`${typeof room} ${String(room)}`)
          .digest('base64url')}`,
  );
}

/** Sessions of clients who may come back, to any worker. The hub has them, with what they miss. */
export class SessionStore {
  readonly #taking = new Set<string>();
  #warned = false;

  constructor(
    private readonly hub: HubClient,
    private readonly channels: HubChannels,
    readonly ids: PrivateIds,
    readonly maxBytes: number,
    private readonly warn: (message: string) => void,
  ) {}

  /** Without a hub, or with data that is not JSON, the client begins anew. */
  keep(channel: string, session: SessionToPersist, ttlMs: number): void {
    this.#keep(channel, session, ttlMs).catch(() => {});
  }

  /** Socket.IO calls it while a connection is closed: what is thrown there ends the process. */
  async #keep(channel: string, session: SessionToPersist, ttlMs: number): Promise<void> {
    const body = this.encodeData(session);
    if (body === undefined) return;
    const at = placeOf(channel, session.pid);
    const question = { op: 'set', ...at, form: 'j', ttlMs, maxBytes: this.maxBytes } as const;
    await this.hub.ask(question, KEEP_MS, body);
  }

  /** @returns `undefined` where the data is not JSON, of which the operator is told once. */
  encodeData(session: { readonly data: unknown }): Buffer | undefined {
    try {
      return encodeJson(session);
    } catch (error) {
      if (!this.#warned) {
        this.warn(
          `socket.data of a client is not JSON: other workers see it empty, and a client that has it cannot be recovered: ${(error as Error).message.split('\n')[0]}`,
        );
      }
      this.#warned = true;
      return undefined;
    }
  }

  /**
   * Takes it, with the packets that its client has missed. Of several who try, one has it.
   *
   * @param uid a member of the channel.
   * @param pid whatever the client has sent.
   * @param surrendered has its old worker keep it, should that not know that the client is gone.
   * @returns `undefined` where its client has to begin anew.
   */
  async take(
    channel: string,
    uid: string,
    pid: string,
    offset: string,
    surrendered: () => Promise<void>,
  ): Promise<Taken | undefined> {
    const isPossible = offset.length <= MAX_OFFSET && this.#taking.size < MAX_TAKING;
    if (!isPossible || this.#taking.has(pid) || !this.ids.isOwn(channel, pid)) return undefined;
    this.#taking.add(pid);
    try {
      return await this.#take(placeOf(channel, pid), uid, offset, surrendered);
    } finally {
      this.#taking.delete(pid);
    }
  }

  async #take(
    at: ReturnType<typeof placeOf>,
    uid: string,
    offset: string,
    surrendered: () => Promise<void>,
  ): Promise<Taken | undefined> {
    const ask = () => this.hub.askUntil({ op: 'get', ...at }, TAKE_MS);
    let answer = await ask();
    if (answer?.header.t === 'miss') answer = await surrendered().then(ask);
    if (answer?.header.t !== 'hit') return undefined;
    const session = decodeJson(answer.body) as SessionToPersist;
    const missed = await this.channels.missed(uid, offset, tagsOf(session.rooms));
    if (missed === undefined) return undefined;
    const { header } = await this.hub.ask({ op: 'delete', ...at }, KEEP_MS);
    if (header.t !== 'done' || header.changed === 0) return undefined; // another one has it
    const missedPackets = missed.map((each) => {
      const { packet } = (decodeJson(each.body) as { data: Broadcast }).data;
      return [...packet.data, each.offset];
    });
    return { ...session, missedPackets, upTo: missed.at(-1)?.offset ?? offset };
  }
}

/** A signed id has no space. */
function placeOf(channel: string, pid: string): { cache: string; key: string } {
  return { cache: CACHE, key: `${pid} ${channel}` };
}
