import { isResponsive, type WorkerHandle } from '../worker-handle.js';
import type { BoundSocket } from './bound-socket.js';
import type { Listening } from './listening.interface.js';

/**
 * One socket for each slot: all on one port (`reuse-port`), or each on its own port (`ports`). If
 * the worker of a slot is gone or blocked, the socket of that slot is orphaned: the kernel still
 * sends connections to it. Until the slot has a worker that answers, the workers of all other slots
 * listen on its socket too. Without other workers, new connections wait in the socket's backlog.
 */
export class SlotListening implements Listening {
  readonly sockets: BoundSocket[] = [];
  /** Slots whose socket a worker was given. Only these sockets can have connections waiting. */
  readonly #opened = new Set<number>();
  /** For each worker, the slots whose orphaned sockets it listens on in addition to its own. */
  #adopted = new Map<WorkerHandle, Set<number>>();

  constructor(
    readonly balancing: 'reuse-port' | 'ports',
    private readonly bind: (slot: number) => BoundSocket,
  ) {}

  get url(): string {
    return this.sockets[0]!.url;
  }

  get ports(): readonly number[] {
    return this.balancing === 'ports' ? this.sockets.flatMap(({ port }) => port ?? []) : [];
  }

  reserve(slots: number): void {
    const added: BoundSocket[] = [];
    try {
      for (let slot = this.sockets.length; slot < slots; slot += 1) {
        added.push(this.bind(slot));
      }
    } catch (error) {
      for (const socket of added) socket.close();
      throw error;
    }
    this.sockets.push(...added);
  }

  grant(worker: WorkerHandle): void {
    const { slot } = worker.identity;
    const { target, handle } = this.sockets[slot]!;
    this.#opened.add(slot);
    worker.send({ type: 'listen', target }, handle);
  }

  settle(workers: readonly WorkerHandle[], now: number): void {
    const ready = workers.filter(({ state }) => state === 'ready');
    const served = new Set<number>();
    for (const worker of ready) {
      if (isResponsive(worker, now)) served.add(worker.identity.slot);
    }
    const orphaned = [...this.#opened].filter((slot) => !served.has(slot));
    const before = this.#adopted;
    this.#adopted = new Map();
    for (const worker of ready) {
      const own = worker.identity.slot;
      const wanted = new Set(orphaned.filter((slot) => slot !== own));
      const adopted = before.get(worker) ?? new Set();
      for (const slot of wanted) {
        if (!adopted.has(slot)) worker.send({ type: 'adopt', slot }, this.sockets[slot]!.handle);
      }
      for (const slot of adopted) if (!wanted.has(slot)) worker.send({ type: 'release', slot });
      if (wanted.size > 0) this.#adopted.set(worker, wanted);
    }
  }

  close(): void {
    for (const socket of this.sockets) socket.close();
  }
}
