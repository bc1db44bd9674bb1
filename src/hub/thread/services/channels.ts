import type { FromHub, ToHub } from '../../wire/protocol.js';
import { Journal } from './journal.js';

/** One whose worker hears what is said. */
interface Listener {
  /** Bytes that it has not read. */
  readonly unsentBytes: number;
  send(header: FromHub, body?: Buffer): void;
}

type Say = Extract<ToHub, { op: 'say' }>;
type Place = { readonly channel: string; readonly name: string };
type Missed = Extract<ToHub, { op: 'missed' }>;

/** One that has more to read misses what is said. */
const MAX_BACKLOG_BYTES = 8 * 1024 * 1024;

/**
 * Channels on which members of several workers speak. All hear the same order, the speaker too: its
 * echo stands where the others have the message. Members learn who has left.
 */
export class Channels<P extends Listener> {
  readonly #channels = new Map<string, Map<string, P>>();
  readonly #journal = new Journal();
  /** Numbers of another hub's journal are no numbers of this one. */
  readonly #era = globalThis.crypto.randomUUID().slice(0, 8);

  join(peer: P, { channel, name }: Place): void {
    let members = this.#channels.get(channel);
    if (members === undefined) this.#channels.set(channel, (members = new Map()));
    members.set(name, peer);
  }

  part(peer: P, { channel, name }: Place): void {
    const members = this.#channels.get(channel);
    if (members?.get(name) !== peer) return;
    members.delete(name);
    if (members.size === 0) this.#channels.delete(channel);
    for (const other of members.values()) other.send({ t: 'left', channel, name });
  }

  /** Its worker is gone. */
  remove(peer: P): void {
    for (const [channel, members] of this.#channels) {
      for (const [name, of] of members) if (of === peer) this.part(peer, { channel, name });
    }
  }

  say(from: P, { channel, name, to, echo, keep }: Say, body: Buffer, now: number): void {
    const number = keep && this.#journal.add(channel, keep, body, keep, now);
    const offset = number === undefined ? undefined : `${this.#era}.${number}`;
    const members = this.#channels.get(channel) ?? new Map<string, P>();
    let missed = 0;
    for (const [member, peer] of members) {
      if (member === name || (to !== undefined && member !== to)) continue;
      if (peer.unsentBytes > MAX_BACKLOG_BYTES) missed += 1;
      else peer.send({ t: 'said', channel, from: name, to: member, offset }, body);
    }
    if (echo !== undefined) from.send({ t: 'echo', echo, offset, missed });
  }

  missed(from: P, { id, channel, after, tags }: Missed): void {
    const [era, number] = after.split('.');
    const kept =
      era === this.#era && /^\d{1,15}$/.test(number ?? '')
        ? this.#journal.after(channel, Number(number), tags)
        : undefined;
    if (kept === undefined) return from.send({ t: 'miss', id });
    from.send(
      {
        t: 'kept',
        id,
        offsets: kept.map((each) => `${this.#era}.${each.number}`),
        lengths: kept.map((each) => each.body.length),
      },
      Buffer.concat(kept.map((each) => each.body)),
    );
  }

  sweep(now: number): void {
    this.#journal.sweep(now);
  }
}
