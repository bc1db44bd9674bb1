import { MAX_BACKLOG_BYTES, type Peer, type RequestOf } from '../wire/protocol.js';

type Membership = Pick<RequestOf<'join'>, 'channel' | 'name'>;

/**
 * Channels whose members exchange messages across workers. All members see the messages in the same order,
 * because the sender gets an echo at its message's place. When a member leaves, the others are notified.
 */
export class Channels {
  readonly #channels = new Map<string, Map<string, Peer>>();

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

  /** Removes the members of a worker that has disconnected. */
  leave(peer: Peer): void {
    for (const [channel, members] of this.#channels) {
      for (const [name, owner] of members) if (owner === peer) this.part(peer, { channel, name });
    }
  }

  say(from: Peer, { channel, name, to, echo }: RequestOf<'say'>, body: Buffer): void {
    let missed = 0;
    for (const [member, peer] of this.#channels.get(channel) ?? []) {
      if (member === name || (to !== undefined && member !== to)) continue;
      if (peer.unsentBytes > MAX_BACKLOG_BYTES) missed += 1;
      else peer.send({ t: 'said', to: member }, body);
    }
    if (echo !== undefined) from.send({ t: 'echo', echo, missed });
  }
}
