import type { RequestOf } from '../../wire/protocol.js';
import { Journal } from './journal.js';
import { MAX_BACKLOG_BYTES, type Peer } from './peer.js';

interface Membership {
  readonly channel: string;
  readonly name: string;
}

/**
 * Channels, whose members exchange messages. The members may be in different workers. All members
 * see one order, because the sender gets an echo at its message's place. When a member leaves, the
 * other members are told.
 */
export class Channels {
  readonly #channels = new Map<string, Map<string, Peer>>();
  readonly #journal = new Journal();
  /** Part of each offset. It identifies this hub, because another hub numbers messages anew. */
  readonly #era = globalThis.crypto.randomUUID().slice(0, 8);

  join(peer: Peer, { channel, name }: Membership): void {
    let members = this.#channels.get(channel);
    if (members === undefined) this.#channels.set(channel, (members = new Map()));
    members.set(name, peer);
  }

  part(peer: Peer, { channel, name }: Membership): void {
    const members = this.#channels.get(channel);
    if (members?.get(name) !== peer) return;
    members.delete(name);
    if (members.size === 0) this.#channels.delete(channel);
    for (const other of members.values()) other.send({ t: 'left', channel, name });
  }

  /** Removes the members of a worker that is gone. */
  leave(peer: Peer): void {
    for (const [channel, members] of this.#channels) {
      for (const [name, owner] of members) if (owner === peer) this.part(peer, { channel, name });
    }
  }

  say(
    from: Peer,
    { channel, name, to, echo, keep }: RequestOf<'say'>,
    body: Buffer,
    now: number,
  ): void {
    const number = keep && this.#journal.add(channel, keep, body, now);
    const offset = number === undefined ? undefined : `${this.#era}.${number}`;
    let missed = 0;
    for (const [member, peer] of this.#channels.get(channel) ?? []) {
      if (member === name || (to !== undefined && member !== to)) continue;
      if (peer.unsentBytes > MAX_BACKLOG_BYTES) missed += 1;
      else peer.send({ t: 'said', from: name, to: member, offset }, body);
    }
    if (echo !== undefined) from.send({ t: 'echo', echo, offset, missed });
  }

  missed(from: Peer, { id, channel, after, tags }: RequestOf<'missed'>): void {
    const [era, number] = after.split('.');
    const kept =
      era === this.#era && /^\d{1,15}$/.test(number ?? '')
        ? this.#journal.after(channel, Number(number), tags)
        : undefined;
    if (kept === undefined) return from.send({ t: 'miss', id });
    const bodies = kept.map(({ body }) => body);
    const offsets = kept.map((each) => `${this.#era}.${each.number}`);
    const lengths = bodies.map(({ length }) => length);
    from.send({ t: 'kept', id, offsets, lengths }, Buffer.concat(bodies));
  }

  sweep(now: number): void {
    this.#journal.sweep(now);
  }
}
