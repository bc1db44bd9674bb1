import cluster from 'node:cluster';
import { subscribe } from 'node:diagnostics_channel';
import type { Server } from 'node:net';
import { ClusterConfigurationError } from '../../contract/errors/errors.js';
import { reportError } from '../../contract/errors/error-report.js';
import {
  type BalancingStrategy,
  refuseBalancing,
  type ResolvedClusterOptions,
} from '../../contract/options/resolve.js';
import { whenFree } from '../../contract/process/in-time.js';
import {
  emptyAndClose,
  LISTENING,
  type ListeningHandle,
} from '../../contract/process/accept-queue.js';
import { isResponsive, type WorkerHandle } from '../worker-handle.js';
import { BoundSocket, formatAddress } from './bound-socket.js';

type Options = Pick<ResolvedClusterOptions, 'address' | 'balancing' | 'workers'>;

/**
 * Gives the workers their listening sockets, according to the balancing strategy.
 *
 * `shared`: all workers listen on one socket, and the kernel wakes an idle worker. The primary
 * keeps the socket open, so connections wait in its backlog while no worker is alive. If the socket
 * has no handle (with `round-robin`, or if this Node version cannot keep a socket open), workers
 * listen through node:cluster.
 *
 * `reuse-port` and `ports`: each slot has its own socket, on a shared port or its own. If the
 * worker of a slot has exited or is blocked, the kernel still sends connections to its
 * socket. Until the slot has a responsive worker, the workers of all other slots also listen there.
 */
export class Listening {
  readonly sockets: BoundSocket[] = [];
  #slots: number;
  #opening: Promise<void> | undefined;
  #closed = false;
  /** Binds the socket of a slot; `undefined` if all slots share one socket. */
  #bindSlot: ((slot: number) => BoundSocket) | undefined;
  /** Slots whose socket was given to a worker. Only these sockets can have waiting connections. */
  readonly #given = new Set<number>();
  /** For each worker, the slots it also listens for, because they have no responsive worker. */
  #adopted = new Map<WorkerHandle, Set<number>>();

  /** @param activated the socket that systemd passed to this process. */
  constructor(
    private readonly options: Options,
    activated?: BoundSocket,
    private readonly openSocket = (address: Options['address']) => BoundSocket.open(address),
  ) {
    this.#slots = options.workers;
    if (activated !== undefined) this.sockets.push(activated);
  }

  /** `'none'` until an address is bound. */
  get balancing(): BalancingStrategy | 'none' {
    return this.sockets.length > 0 ? this.options.balancing : 'none';
  }

  /** The address of the cluster; if each slot has its own port, the address of slot 0. */
  get url(): string {
    return this.sockets[0]?.url ?? formatAddress(this.options.address);
  }

  /** The port of each slot, if each slot has its own port; otherwise empty. */
  get ports(): readonly number[] {
    return this.balancing === 'ports' ? this.sockets.flatMap(({ port }) => port ?? []) : [];
  }

  /**
   * Binds the sockets. Without this call, they are bound when the first worker asks: an app without
   * an HTTP server never asks, so it can run next to another app that uses the default address.
   *
   * @throws ClusterAddressError when an address is taken, forbidden or unknown.
   * @throws ClusterConfigurationError if this Node version cannot hold one socket for each slot.
   */
  async open(): Promise<void> {
    this.#opening ??= whenFree(() => this.#bind());
    try {
      await this.#opening;
    } catch (error) {
      this.#opening = undefined; // the next worker's request will retry
      throw error;
    }
  }

  /** Sends a worker the socket or the address to listen on. */
  grant(worker: WorkerHandle): void {
    if (this.sockets.length > 0) return this.#give(worker);
    this.open().then(
      () => this.#give(worker),
      (error: Error) => {
        worker.send({ type: 'listen-refused', error: reportError(error.cause ?? error) });
      },
    );
  }

  /**
   * Makes sure that this number of slots can listen.
   *
   * @throws ClusterAddressError if a socket cannot be bound. In this case no socket has changed.
   * @throws ClusterConfigurationError if a slot would have a port above 65535.
   */
  reserve(slots: number): void {
    if (this.options.balancing === 'ports') refuseBalancing({ ...this.options, workers: slots });
    this.#slots = Math.max(this.#slots, slots);
    if (this.#bindSlot === undefined) return;
    const added: BoundSocket[] = [];
    try {
      for (let slot = this.sockets.length; slot < slots; slot += 1) {
        added.push(this.#bindSlot(slot));
      }
    } catch (error) {
      for (const socket of added) socket.close();
      throw error;
    }
    this.sockets.push(...added);
  }

  /** Adapts to workers that have started, exited or stopped answering. @param now monotonic ms. */
  settle(workers: readonly WorkerHandle[], now: number): void {
    if (this.#bindSlot === undefined) return;
    const ready = workers.filter(({ state }) => state === 'ready');
    const served = new Set<number>();
    for (const worker of ready) {
      if (isResponsive(worker, now)) served.add(worker.identity.slot);
    }
    const orphaned = [...this.#given].filter((slot) => !served.has(slot));
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
    this.#closed = true;
    for (const socket of this.sockets) socket.close();
  }

  async #bind(): Promise<void> {
    const { address, balancing } = this.options;
    const socket = await this.openSocket(address);
    if (balancing === 'shared') {
      // Without a handle, workers listen through node:cluster. With SCHED_NONE they share one socket.
      if (socket.handle === undefined) cluster.schedulingPolicy = cluster.SCHED_NONE;
      this.sockets.push(socket);
    } else if (balancing === 'round-robin') {
      cluster.schedulingPolicy = cluster.SCHED_RR;
      // Binding checked that the address is free, and chose a port if the port was 0.
      this.sockets.push(socket.letGo());
    } else if (socket.handle === undefined) {
      throw new ClusterConfigurationError(
        `balancing '${balancing}' needs net._createServerHandle, which Node ${process.version} does not have; set balancing to 'shared', the default`,
      );
    } else {
      const reusePort = balancing === 'reuse-port';
      // The first socket, bound without SO_REUSEPORT, checked that no other cluster uses the port.
      socket.close();
      this.#bindSlot = (slot) =>
        socket.another(socket.port! + (reusePort ? 0 : slot), { reusePort });
      this.reserve(this.#slots);
    }
    if (this.#closed) this.close();
  }

  #give(worker: WorkerHandle): void {
    const { slot } = worker.identity;
    this.#given.add(slot);
    const { target, handle } = this.sockets[this.#bindSlot === undefined ? 0 : slot]!;
    worker.send({ type: 'listen', target }, handle);
  }
}

/** The maximum time to empty the accept queues. Only an overloaded machine needs this long. */
const PATIENCE_MS = 5_000;

interface Acceptor {
  readonly server: Server & { readonly _handle: unknown };
  readonly handle: ListeningHandle & { close(): void };
}

/**
 * The sockets on which node:cluster accepts connections in the primary: with round-robin, and for
 * an app's further servers. node:cluster closes such a socket when the last worker that uses it
 * exits, and the kernel then resets the waiting connections.
 */
export class ClusterAcceptors {
  #acceptors: Acceptor[] = [];

  constructor() {
    subscribe(LISTENING, (message) => {
      const { server } = message as { readonly server: Acceptor['server'] };
      this.#acceptors = this.#acceptors.filter(isOpen);
      // The handle is read now, because node:cluster is about to remove it from the server.
      this.#acceptors.push({ server, handle: server._handle as Acceptor['handle'] });
    });
  }

  /** Accepts all waiting connections, and hands them to workers. Then closes the sockets. */
  async close(): Promise<void> {
    const signal = AbortSignal.timeout(PATIENCE_MS);
    // Only node:cluster takes the handle from its server. A server that still has its handle is not
    // node:cluster's, and must stay open.
    const ours = this.#acceptors.filter((each) => isOpen(each) && each.server._handle === null);
    this.#acceptors = [];
    await Promise.all(
      ours.map(({ handle }) => emptyAndClose(handle, signal, () => handle.close())),
    );
  }
}

function isOpen({ handle }: Acceptor): boolean {
  return handle.fd !== undefined && handle.fd >= 0;
}
