import { extension } from 'nestjs-cluster/extension';
import { messageOf } from '../options.js';
import type { RequestOf } from '../wire/protocol.js';
import type { ChannelPush } from './hub-client.interface.js';
import type { HubClient } from './hub-client.js';

/** A member of a channel, in this process. */
export interface ChannelMember {
  said(body: Buffer): void;
  /** Called when another member is gone. */
  left(name: string): void;
  /** Called each time the member has joined. The member misses messages while the connection is lost. */
  joined(): void;
}

type Say = RequestOf<'say'>;

export interface SayOptions {
  /** The name of the member that gets the message. Default: all other members. */
  readonly to?: string;
  /** Called at the message's place in the common order, or when it is clear that no member gets it. */
  readonly echo?: () => void;
}

interface Waiting {
  readonly say: Say;
  readonly body: Buffer;
  readonly echo: SayOptions['echo'];
  readonly since: number;
}

/** Maximum size of all messages that wait for the hub. Beyond it, the oldest message is given up. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;

/** How long a message waits for the hub: long enough for a restart of the hub. */
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
  readonly #waiting: Waiting[] = [];
  #waitingBytes = 0;
  /** The timer that gives up the message that has waited longest. */
  #givingUp: NodeJS.Timeout | undefined;

  constructor(private readonly hub: HubClient) {
    hub.listen({
      opened: () => {
        for (const name of this.#members.keys()) this.#join(name);
        this.#flush();
      },
      closed: () => {
        const lost = [...this.#echoes.values()];
        this.#echoes.clear();
        for (const echo of lost) echo();
      },
      drained: () => this.#flush(),
      heard: (push, body) => this.#onPush(push, body),
    });
  }

  /** @param name a name that no other member has. */
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

  say(name: string, body: Buffer, { to, echo }: SayOptions = {}): void {
    const own = this.#members.get(name);
    if (own === undefined) return;
    const number = echo && (this.hub.lastEcho += 1);
    const say = { op: 'say', channel: own.channel, name, to, echo: number } as const;
    this.#waiting.push({ say, body, echo, since: performance.now() });
    this.#waitingBytes += body.length;
    this.#flush();
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

  #onPush(push: ChannelPush, body: Buffer): void {
    if (push.t === 'echo') {
      const echo = this.#echoes.get(push.echo);
      if (echo === undefined) return; // the echo is for another HubChannels of this process
      this.#echoes.delete(push.echo);
      if (push.missed > 0) this.hub.noteOutcome('events', 'dropped', push.missed);
      return echo();
    }
    if (push.t === 'said') {
      return this.#members.get(push.to)?.member.said(body);
    }
    for (const { channel, member } of this.#members.values()) {
      if (channel === push.channel) member.left(push.name);
    }
  }

  /** Sends waiting messages, in order. A message that waits too long is not sent to other processes. */
  #flush(): void {
    while (this.#waiting.length > 0) {
      const { say, body, echo, since } = this.#waiting[0]!;
      const sent = this.#send(say, body);
      const leftMs =
        sent === undefined || this.hub.isUnavailable ? 0 : since + MAX_WAIT_MS - performance.now();
      if (!sent && leftMs > 0 && this.#waitingBytes <= MAX_WAITING_BYTES) {
        return this.#giveUpIn(leftMs);
      }
      this.#waiting.shift();
      this.#waitingBytes -= body.length;
      if (!sent) this.hub.noteOutcome('events', 'dropped');
      if (echo === undefined) continue;
      if (sent) this.#echoes.set(say.echo!, echo);
      else echo();
    }
    clearTimeout(this.#givingUp);
    this.#givingUp = undefined;
  }

  /** @returns `undefined` if the message is too large, so that a second try is useless. */
  #send(say: Say, body: Buffer): boolean | undefined {
    try {
      return this.hub.tell(say, body);
    } catch (error) {
      extension()?.warn(
        `a message does not reach other workers: ${messageOf(error)}; send less, or a key by which they find it`,
      );
      return undefined;
    }
  }

  /** Flushes again after `ms`, because the hub may never read again. */
  #giveUpIn(ms: number): void {
    this.#givingUp ??= setTimeout(() => {
      this.#givingUp = undefined;
      this.#flush();
    }, Math.ceil(ms));
  }
}
