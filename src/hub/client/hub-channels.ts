import { messageOf, OnceAMinute } from '../../contract/errors/index.js';
import type { ToHub } from '../wire/protocol.js';
import type { HubClient } from './hub-client.js';
import type { ChannelPush } from './hub-listener.interface.js';

/** What a member of a channel is told. */
export interface ChannelEars {
  said(body: Buffer, from: string, offset: string | undefined): void;
  /** Another member is gone. */
  left(name: string): void;
  /** It is a member, for the first time or once more: what was said in between it has missed. */
  joined(): void;
}

type Say = Extract<ToHub, { op: 'say' }>;

export interface Saying {
  /** One member; else all others. */
  readonly to?: string;
  readonly keep?: Say['keep'];
  /**
   * Called where the others hear it, or once it is known that they do not.
   *
   * @param offset where it is kept, that of the message.
   */
  readonly echo?: (offset: string | undefined) => void;
}

export interface Missed {
  readonly offset: string;
  readonly body: Buffer;
}

interface Waiting {
  readonly say: Say;
  readonly body: Buffer;
  readonly echo: Saying['echo'];
  readonly since: number;
}

/** What waits for a hub that does not read. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;

/** A hub that is started anew is back before. */
const MAX_WAIT_MS = 5_000;

const ANSWER_MS = 1_000;
const REJOIN_MS = 1_000;
const MISSED_MS = 5_000;

/** The members of channels that this process has. What they say leaves in its order. */
export class HubChannels {
  readonly #members = new Map<string, { readonly channel: string; readonly ears: ChannelEars }>();
  readonly #echoes = new Map<number, (offset: string | undefined) => void>();
  readonly #waiting: Waiting[] = [];
  #waitingBytes = 0;
  /** Ends the wait of what waits longest. */
  #givingUp: NodeJS.Timeout | undefined;
  readonly #large: OnceAMinute;

  constructor(
    private readonly hub: HubClient,
    private readonly warn: (message: string) => void,
  ) {
    this.#large = new OnceAMinute(warn);
    hub.listen({
      opened: () => {
        for (const name of this.#members.keys()) this.#join(name);
        this.#flush();
      },
      closed: () => {
        const lost = [...this.#echoes.values()];
        this.#echoes.clear();
        for (const echo of lost) echo(undefined);
      },
      drained: () => this.#flush(),
      heard: (push, body) => this.#hear(push, body),
    });
  }

  /** @param name no other member has it. */
  join(channel: string, name: string, ears: ChannelEars): void {
    this.#members.set(name, { channel, ears });
    if (this.hub.open) this.#join(name);
  }

  part(name: string): void {
    const member = this.#members.get(name);
    if (member === undefined) return;
    this.#members.delete(name);
    this.hub.tell({ op: 'part', channel: member.channel, name });
  }

  say(name: string, body: Buffer, { to, keep, echo }: Saying = {}): void {
    const member = this.#members.get(name);
    if (member === undefined) return;
    const number = echo && (this.hub.lastEcho += 1);
    const say = { op: 'say', channel: member.channel, name, to, keep, echo: number } as const;
    this.#waiting.push({ say, body, echo, since: performance.now() });
    this.#waitingBytes += body.length;
    this.#flush();
  }

  /** @returns `undefined` where nobody knows. */
  async missed(name: string, after: string, tags: string[]): Promise<Missed[] | undefined> {
    const { channel } = this.#members.get(name)!;
    const question = { op: 'missed', channel, after, tags } as const;
    const answer = await this.hub.askUntil(question, MISSED_MS);
    if (answer?.header.t !== 'kept') return undefined;
    const { header, body } = answer;
    let at = 0;
    return header.offsets.map((offset, index) => ({
      offset,
      body: body.subarray(at, (at += header.lengths[index]!)),
    }));
  }

  #join(name: string): void {
    const member = this.#members.get(name);
    if (member === undefined) return;
    this.hub.ask({ op: 'join', channel: member.channel, name }, ANSWER_MS).then(
      () => member.ears.joined(),
      ({ failure }: { failure?: string }) => {
        if (failure === 'refused') {
          this.warn(
            'its primary is of an older version of nestjs-cluster, and reaches no clients of other workers: restart the cluster',
          );
        } else if (this.hub.open) {
          setTimeout(() => this.#join(name), REJOIN_MS).unref();
        }
      },
    );
  }

  #hear(push: ChannelPush, body: Buffer): void {
    if (push.t === 'echo') {
      const echo = this.#echoes.get(push.echo);
      if (echo === undefined) return; // of others in this process
      this.#echoes.delete(push.echo);
      if (push.missed > 0) this.hub.noteOutcome('events', 'dropped', push.missed);
      return echo(push.offset);
    }
    if (push.t === 'said') {
      return this.#members.get(push.to)?.ears.said(body, push.from, push.offset);
    }
    for (const { channel, ears } of this.#members.values()) {
      if (channel === push.channel) ears.left(push.name);
    }
  }

  /** Sends what the hub takes. What has waited for too long is for this process alone. */
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
      else echo(undefined);
    }
    clearTimeout(this.#givingUp);
    this.#givingUp = undefined;
  }

  /** @returns `undefined` if it is too large: it reaches nobody else, ever. */
  #send(say: Say, body: Buffer): boolean | undefined {
    try {
      return this.hub.tell(say, body);
    } catch (error) {
      this.#large.say(
        `a message does not reach other workers: ${messageOf(error)}; send less, or a key by which they find it`,
        'large',
      );
      return undefined;
    }
  }

  /** The hub is asked again once it reads. It may never do so. */
  #giveUpIn(ms: number): void {
    this.#givingUp ??= setTimeout(() => {
      this.#givingUp = undefined;
      this.#flush();
    }, Math.ceil(ms));
  }
}
