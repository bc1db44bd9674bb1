import { createHash } from 'node:crypto';
import type { BroadcastOptions, Session } from 'socket.io-adapter';
import type { HubChannels } from '../../hub/client/hub-channels.js';
import type { HubClient } from '../../hub/client/hub-client.js';
import { decodeJson, encodeJson } from '../../hub/client/json-payload.js';

export type SessionToPersist = Omit<Session, 'missedPackets'>;

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

/** More is no private session id of Socket.IO. */
const MAX_ID = 64;

/** Rooms by names that the hub takes: a client may have chosen them. */
export function tagsOf(rooms: Iterable<unknown>): string[] {
  return Array.from(rooms, (room) =>
    typeof room === 'string' && room.length <= MAX_ID
      ? room
      : createHash('sha256')
          .update(`${typeof room} ${String(room)}`)
          .digest('base64url'),
  );
}

/** Sessions of clients who may come back, to whichever worker. The hub has them, with what they miss. */
export class SessionStore {
  constructor(
    private readonly hub: HubClient,
    private readonly channels: HubChannels,
    readonly maxBytes: number,
  ) {}

  keep(channel: string, session: SessionToPersist, ttlMs: number): void {
    const at = { cache: CACHE, key: `${channel} ${session.pid}` };
    const question = { op: 'set', ...at, form: 'j', ttlMs, maxBytes: this.maxBytes } as const;
    // Without a hub the client begins anew.
    this.hub.ask(question, KEEP_MS, encodeJson(session)).catch(() => {});
  }

  /**
   * Takes it, with the packets that its client has missed.
   *
   * @param uid a member of the channel.
   * @param surrendered has its old worker keep it, should that not know that the client is gone.
   * @returns `undefined` where its client has to begin anew.
   */
  async take(
    channel: string,
    uid: string,
    pid: string,
    offset: string,
    surrendered: () => Promise<void>,
  ): Promise<(Session & { readonly upTo: string }) | undefined> {
    if (pid.length > MAX_ID || offset.length > MAX_ID) return undefined;
    const at = { cache: CACHE, key: `${channel} ${pid}` };
    const ask = () => this.hub.askUntil({ op: 'get', ...at }, TAKE_MS);
    let answer = await ask();
    if (answer?.header.t === 'miss') answer = await surrendered().then(ask);
    if (answer?.header.t !== 'hit') return undefined;
    const session = decodeJson(answer.body) as SessionToPersist;
    const missed = await this.channels.missed(uid, offset, tagsOf(session.rooms));
    if (missed === undefined) return undefined;
    this.hub.ask({ op: 'delete', ...at }, KEEP_MS).catch(() => {});
    const missedPackets = missed.map((each) => {
      const { packet } = (decodeJson(each.body) as { data: Broadcast }).data;
      return [...packet.data, each.offset];
    });
    return { ...session, missedPackets, upTo: missed.at(-1)?.offset ?? offset };
  }
}
