import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';

/** With a listener to one of them, a server takes such requests away from its app. */
type TakingEvent = 'upgrade' | 'connect';
type TakingListener = (request: IncomingMessage, socket: Duplex) => void;

/** The key of a server's listeners, on the server itself. */
const KEY = Symbol.for('nestjs-cluster.upgrade-listeners');

type ServerWithListeners = Server & { [KEY]?: Partial<Record<TakingEvent, UpgradeListeners>> };

/**
 * Our own listeners to an event of a server, called before the app's. They listen only while
 * somebody else does: alone they would make the server take what nobody handles.
 */
export class UpgradeListeners {
  readonly #ours = new Set<unknown>();
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
