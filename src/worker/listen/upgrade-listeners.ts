import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';

/** Events of a server. If an event has a listener, its requests do not reach the app's handler. */
type TakingEvent = 'upgrade' | 'connect';
type TakingListener = (request: IncomingMessage, socket: Duplex) => void;

/** The property of a server that holds its {@link UpgradeListeners}. */
const KEY = Symbol.for('nestjs-cluster.upgrade-listeners');

type ServerWithListeners = Server & { [KEY]?: Partial<Record<TakingEvent, UpgradeListeners>> };

/**
 * Our own listeners for an event of a server. They are called before the app's listeners. They are
 * added only while the app has a listener. Otherwise our listeners would keep the requests from the
 * app's handler, and no one would answer them.
 */
export class UpgradeListeners {
  readonly #ours = new Set<unknown>();
  #listening = false;

  /** Returns the only instance for this event of the server. With two, each would keep the other listening. */
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
      this.#listening = true; // set first, because adding our listeners emits 'newListener' too
      for (const ours of this.#ours) server.prependListener(event, ours as TakingListener);
    });
    server.on('removeListener', (removed: string | symbol) => {
      if (removed !== event || !this.#listening || this.#othersListen) return;
      this.#listening = false;
      for (const ours of this.#ours) server.off(event, ours as TakingListener);
    });
  }

  add(listener: TakingListener): void {
    this.#ours.add(listener);
    if (this.#listening) this.server.prependListener(this.event, listener);
  }

  get #othersListen(): boolean {
    return this.server.listeners(this.event).some((each) => !this.#ours.has(each));
  }
}
