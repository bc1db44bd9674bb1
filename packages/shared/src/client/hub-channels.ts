import { extension } from 'nestjs-cluster/extension';
import { messageOf } from '../options.js';
import type { HubClient, Push } from './hub-client.js';

/** A member of a channel, in this process. */
export interface ChannelMember {
  /** @param body a view of reused memory. */
  said(body: Buffer): void;
  /** Called when another member has left. */
  left(name: string): void;
  /** Called each time the member joins. The member misses messages while the connection is lost. */
  joined(): void;
}

export interface SayOptions {
  /** The name of the member that gets the message. Default: all other members. */
  readonly to?: string;
  /** Called when the message's turn comes in the common order, or if it cannot be delivered. */
  readonly echo?: () => void;
}

/** Maximum time that a message waits for a connection, in ms. Long enough for a restart of the hub. */
const MAX_WAIT_MS = 5_000;

const ANSWER_MS = 1_000;
const REJOIN_MS = 1_000;

/** The members of channels in this process. The messages of a member are sent in order. */
export class HubChannels {
  readonly #members = new Map<
    string,
    { readonly channel: string; readonly member: ChannelMember }
  >();
  readonly #echoes = new Map<number, () => void>();

  constructor(private readonly hub: HubClient) {
    hub.listen({
      opened: () => {
        for (const name of this.#members.keys()) this.#join(name);
      },
      closed: () => {
        const lost = [...this.#echoes.values()];
        this.#echoes.clear();
        for (const echo of lost) echo();
      },
      pushed: (push, body) => this.#onPush(push, body),
    });
  }

  /** @param name must be unique among all members. */
  join(channel: string, name: string, member: ChannelMember): void {
    this.#members.set(name, { channel, member });
    if (this.hub.open) this.#join(name);
  }

  part(name: string): void {
    const own = this.#members.get(name);
    if (own === undefined) return;
    this.#members.delete(name);
    this.hub.tell({ op: 'part', channel: own.channel, name });
  }

  say(name: string, body: Buffer, options: SayOptions = {}): void {
    if (this.hub.open) this.#say(name, body, options);
    else void this.hub.ready(MAX_WAIT_MS).then(() => this.#say(name, body, options));
  }

  /** Sends a message. If that fails, logs a warning, and other processes do not receive the message. */
  #say(name: string, body: Buffer, { to, echo }: SayOptions): void {
    const channel = this.#members.get(name)?.channel;
    if (channel === undefined) return echo?.();
    const number = echo && this.hub.nextNumber();
    let sent = false;
    try {
      sent = this.hub.tell({ op: 'say', channel, name, to, echo: number }, body);
    } catch (error) {
      extension()?.warn(`a message was not sent to other workers: ${messageOf(error)}`);
    }
    if (!sent) this.hub.noteOutcome('say', 'dropped');
    if (sent && echo) this.#echoes.set(number!, echo);
    else echo?.();
  }

  #join(name: string): void {
    const own = this.#members.get(name);
    if (own === undefined) return;
    this.hub.ask({ op: 'join', channel: own.channel, name }, ANSWER_MS).then(
      () => own.member.joined(),
      () => {
        if (this.hub.open) setTimeout(() => this.#join(name), REJOIN_MS).unref();
      },
    );
  }

  #onPush(push: Push, body: Buffer): void {
    if (push.t === 'said') return this.#members.get(push.to)?.member.said(body);
    if (push.t === 'left') {
      for (const { channel, member } of this.#members.values()) {
        if (channel === push.channel) member.left(push.name);
      }
      return;
    }
    const echo = push.t === 'echo' ? this.#echoes.get(push.echo) : undefined;
    if (push.t !== 'echo' || echo === undefined) return; // the echo is for another HubChannels of this process
    this.#echoes.delete(push.echo);
    if (push.missed > 0) this.hub.noteOutcome('say', 'missed', push.missed);
    echo();
  }
}
