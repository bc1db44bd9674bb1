import { MAX_BACKLOG_BYTES, type Peer, type RequestOf } from '../wire/protocol.js';

/** A request with no reply yet. */
interface OpenRequest {
  readonly by: Peer;
  readonly id: number;
  readonly to: Peer;
}

/**
 * Sends events to subscribed workers, at most once and in order per sender. A receiver that reads
 * too slowly misses events.
 */
export class EventRouter {
  /** The subscribed workers. The first worker gets the next event for `one`. */
  readonly #receivers = new Set<Peer>();
  /** The open requests by {@link keyOf}. */
  readonly #requests = new Map<string, OpenRequest>();

  subscribe(receiver: Peer): void {
    this.#receivers.add(receiver);
  }

  /** Ends the peer's subscription. The peer can still send requests and get replies. */
  unsubscribe(receiver: Peer): void {
    this.#receivers.delete(receiver);
  }

  /** Removes a peer that has disconnected, and refuses the requests that it has not answered. */
  leave(peer: Peer): void {
    this.unsubscribe(peer);
    for (const [key, { by, id, to }] of this.#requests) {
      if (by !== peer && to !== peer) continue;
      this.#requests.delete(key);
      if (by !== peer) by.send({ t: 'refused', id, why: 'the worker has exited' });
    }
  }

  /** Removes a request whose sender no longer waits for the reply. */
  cancel(by: Peer, id: number): void {
    this.#requests.delete(keyOf(by.number, id));
  }

  /** Sends an event. If a request reaches a receiver, the receiver's reply answers it. */
  publish(from: Peer, { id, name, to, request }: RequestOf<'publish'>, body: Buffer): void {
    const chosen = this.#chosen(from, to);
    const able = chosen.filter(keepsUp);
    for (const receiver of able) {
      const event = { t: 'event', name, from: from.number } as const;
      receiver.send(request === true ? { ...event, request: id } : event, body);
      if (request === true) {
        this.#requests.set(keyOf(from.number, id), { by: from, id, to: receiver });
      }
    }
    if (request === true && able.length > 0) return;
    from.send({ t: 'done', id, changed: able.length, missed: chosen.length - able.length });
  }

  /** Forwards a reply to the peer that sent the request. Drops a reply without an open request. */
  reply(from: Peer, { to, request, failed }: RequestOf<'reply'>, body: Buffer): void {
    const key = keyOf(to, request);
    const open = this.#requests.get(key);
    if (open?.to !== from) return;
    this.#requests.delete(key);
    open.by.send({ t: 'reply', id: request, failed }, body);
  }

  #chosen(from: Peer, to: RequestOf<'publish'>['to']): Peer[] {
    const all = [...this.#receivers];
    if (to === 'all') return all;
    if (to === 'others') return all.filter((each) => each !== from);
    if (typeof to === 'number') {
      // During a replacement a slot has two workers. The newer worker gets the event.
      const ofSlot = all.filter(({ slot }) => slot === to);
      return ofSlot.sort((a, b) => a.number - b.number).slice(-1);
    }
    const able = all.filter(keepsUp);
    const next = able.find(({ leaving }) => !leaving) ?? able[0] ?? all[0];
    if (next === undefined) return [];
    // Moves the receiver to the end of the order.
    this.#receivers.delete(next);
    this.#receivers.add(next);
    return [next];
  }
}

function keepsUp({ unsentBytes }: Peer): boolean {
  return unsentBytes <= MAX_BACKLOG_BYTES;
}

function keyOf(number: number, id: number): string {
  return `${number} ${id}`;
}
