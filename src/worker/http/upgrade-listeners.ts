import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';

/** With a listener to one of them, a server takes such requests away from its app. */
export type TakingEvent = 'upgrade' | 'connect';

export type TakingListener = (request: IncomingMessage, socket: Duplex) => void;

/** The key of a server's listeners, on the server itself. */
const KEY = Symbol.for('nestjs-cluster.upgrade-listeners');

type ServerWithListeners = Server & { [KEY]?: Partial<Record<TakingEvent, UpgradeListeners>> };

/**
 * Our own listeners to an event of a server. They listen only while somebody
 * else does: alone they would make the server take what nobody handles.
 */
export class UpgradeListeners {
  readonly #ours = new Map<unknown, 'first' | 'anywhere'>();
  #listening = false;

  /** One for each event of a server: two would keep each other listening. */
  static of(server: Server, event: TakingEvent): UpgradeListeners {
    const all = ((server as ServerWithListeners)[KEY] ??= {});
    return (all[event] ??= new UpgradeListeners(server, event));
  }

  private constructor(
    private readonly server: Server,
    private readonly event: TakingEvent,
  ) {
    this.#listening = this.#othersListen;
    server.on('newListener', (added: string | symbol) => {
      if (added !== event || this.#listening) return;
      this.#listening = true; // before: ours are new listeners too
      for (const [listener, place] of this.#ours) this.#begin(listener as TakingListener, place);
    });
    server.on('removeListener', (removed: string | symbol) => {
      if (removed !== event || !this.#listening || this.#othersListen) return;
      this.#listening = false;
      for (const listener of this.#ours.keys()) server.off(event, listener as TakingListener);
    });
  }

  /** @param place `first`: it is called before the app's listeners. */
  add(listener: TakingListener, place: 'first' | 'anywhere'): void {
    this.#ours.set(listener, place);
    if (this.#listening) this.#begin(listener, place);
  }

  get #othersListen(): boolean {
    return this.server.listeners(this.event).some((each) => !this.#ours.has(each));
  }

  #begin(listener: TakingListener, place: 'first' | 'anywhere'): void {
    if (place === 'first') this.server.prependListener(this.event, listener);
    else this.server.on(this.event, listener);
  }
}
