import { resolveOptions } from '../../src/contract/options/resolve.js';
import type { WorkerEvent } from '../../src/decide/input.js';
import type {
  ClusterState,
  ProgramPaths,
  Requester,
  WorkerId,
} from '../../src/decide/cluster-state.js';
import { SLICE_MS } from '../../src/primary/timers.js';
import { transition } from '../../src/decide/transition.js';
import type { ProcessEvent } from '../../src/primary/fork-worker.js';
import type { Listening } from '../../src/primary/listening/listening.js';
import type { Program } from '../../src/primary/program.js';
import { DECISIVE, WorkerHandle } from '../../src/primary/worker-handle.js';
import { Supervisor } from '../../src/primary/supervisor.js';
import { Broken, hold } from './invariants/index.js';
import type { SimulatedProcess } from './process.js';
import { type Observation, type Primary, RELEASE, type SIGINT, type World } from './world.js';

/** Above the highest pid on Linux, so that /proc has no process with it. */
const FIRST_PID = 2 ** 22;

/** Every 7th message cannot be sent, and the snapshot is compared after every 7th event. */
const EVERY = 7;

/** How many ms late the acceptors close if `sendFails`. */
const LATE_MS = 4_000;

/**
 * The real supervisor with its table, timers, messages and channels, but simulated processes.
 */
export class ShellPrimary implements Primary {
  /** Two slices: a suspended slice counts as awake, and a pause of up to a slice is not noticed. */
  readonly earlyMs = 2 * SLICE_MS;
  readonly #supervisor: Supervisor;
  readonly #ears = new Map<WorkerId, (told: ProcessEvent) => void>();
  /** By worker, its handle and the number of messages that it has not read. */
  readonly #channels = new Map<WorkerId, { readonly handle: WorkerHandle; unread: number }>();
  /** The last step. It is checked after its effects have been carried out. */
  #unchecked: Observation | undefined;
  /** The first error. The supervisor goes on after an error, but here the life ends by it. */
  #broken: unknown;
  #sent = 0;
  /** By slot, the requests that it had counted in the previous snapshot. */
  readonly #counted = new Map<number, number>();
  state!: ClusterState;

  constructor(private readonly world: World) {
    const { options, url } = world.settings;
    const { workers } = world.scenario;
    this.#supervisor = new Supervisor(
      { ...resolveOptions({ workers }, {}), ...options },
      {
        balancing: 'shared',
        url,
        ports: [],
        sockets: [],
        grant: () => {},
        reserve: () => {
          if (world.refuses) throw new Error('no address');
        },
        settle: () => {},
        close: () => {},
      } as unknown as Listening,
      {
        resolve: () => RELEASE,
        find: (earlier?: ProgramPaths) => world.find(earlier),
      } as unknown as Program,
      (name, event) => {
        if (name === 'warning') this.#warned(event as { message: string; error?: unknown });
        this.#supervisor.tellWorkers(name, event);
      },
      () => 0,
      {
        decide: (...given) => this.#decide(...given),
        startProcess: ({ worker, slot, release }, _program, _options, tell) => {
          const process = world.fork(worker, release.script);
          this.#ears.set(worker, tell);
          process.start();
          const identity = { slot, pid: FIRST_PID + worker, generation: release.generation };
          const handle = new WorkerHandle(identity, {
            isConnected: () => {
              this.#mind(worker);
              return process.state !== 'exited';
            },
            send: (message, _handle, sent) => this.#send(process, message, sent),
            kill: (signal) => this.#kill(process, signal),
          });
          this.#channels.set(worker, { handle, unread: 0 });
          return handle;
        },
        acceptors: { close: () => this.#closed() },
        threads: { path: () => Promise.reject(new Error('no thread')) },
      },
    );
  }

  begin(): void {
    this.#supervisor.start();
  }

  stop(signal: typeof SIGINT | undefined): void {
    this.#supervisor.stop('test', signal?.name);
  }

  reload(requester: Requester): void {
    if (requester.by === 'worker')
      return this.#ask(requester.worker, 'reload-request', { id: requester.id });
    void this.#supervisor.reload('test');
  }

  scale(workers: number, requester: Requester): void {
    if (requester.by === 'worker')
      return this.#ask(requester.worker, 'scale-request', { id: requester.id, workers });
    void this.#supervisor.scale(workers, 'test').catch(() => {});
  }

  restart(slot: number, requester: Requester): void {
    if (requester.by === 'worker')
      return this.#ask(requester.worker, 'restart-request', { id: requester.id, slot });
    void this.#supervisor.restart(slot, 'test');
  }

  hear(worker: WorkerId, event: WorkerEvent): void {
    const { type } = event;
    if (type === 'exited') return this.#hear(worker, { type: 'exit', exit: event.exit });
    if (type === 'channel-error' || type === 'channel-broken') {
      return this.#hear(worker, { type, error: new Error(event.error.message) });
    }
    if (type === 'foreign-version') return this.#ask(worker, 'ready', { v: event.version });
    if (type === 'ready') {
      this.#ask(worker, 'subscribe', { events: ['worker-ready', 'worker-died'] });
      this.#ask(worker, 'listen-request', {});
    }
    const { residentBytes = 0, requests = 0 } = this.world.processes.get(worker) ?? {};
    const stats = { residentMemoryBytes: residentBytes, requestsTotal: requests };
    this.#ask(worker, type, type === 'pong' ? { ...event, stats } : event);
  }

  settle(): void {
    this.#check();
    if (this.#broken !== undefined) throw this.#broken;
  }

  #ask(worker: WorkerId, type: string, fields: object): void {
    const message: unknown = JSON.parse(JSON.stringify({ ...ENVELOPE, type, ...fields }));
    this.#hear(worker, { type: 'message', message });
  }

  #hear(worker: WorkerId, told: ProcessEvent): void {
    this.#ears.get(worker)?.(told);
    if (told.type === 'exit') this.#ears.delete(worker);
  }

  readonly #decide: typeof transition = (before, event, now, settings) => {
    this.#check();
    if (event.type === 'worker' && event.event.type === 'exited') this.world.buried(event.worker);
    try {
      const result = transition(before, event, now, settings);
      this.state = result.state;
      this.#unchecked = { ...result, before, event, world: this.world };
      return result;
    } catch (error) {
      this.#broken ??= error;
      throw error;
    }
  };

  #check(): void {
    const step = this.#unchecked;
    if (step === undefined || this.#broken !== undefined) return;
    this.#unchecked = undefined;
    try {
      this.world.check(step);
      if (this.world.events % EVERY === 0) this.#compare();
    } catch (error) {
      this.#broken = error;
    }
  }

  /** Compares the core's state with the snapshot, which /health, metrics and commands show. */
  #compare(): void {
    const { workers, dismissed } = this.#supervisor.snapshot();
    for (const { slot, requestsTotal } of [...workers, ...dismissed]) {
      const before = this.#counted.get(slot) ?? 0;
      hold('the count of a slot never falls', requestsTotal >= before, { slot, before });
      this.#counted.set(slot, requestsTotal);
    }
    for (const { id } of this.state.workers.values()) {
      const { handle, unread } = this.#channels.get(id)!;
      const isOpen = this.world.processes.get(id)?.state !== 'exited';
      const isRight = !isOpen || handle.reachable === (unread === 0);
      hold('a channel counts the messages that wait in it', isRight, { id, unread });
    }
    const seen = workers.flatMap(({ pid, generation }) => (pid ? [`${pid} ${generation}`] : []));
    const real = [...this.state.workers.values()].map(
      ({ id, generation }) => `${FIRST_PID + id} ${generation}`,
    );
    hold('the snapshot has every process that the core knows', same(seen, real), { seen, real });
  }

  /** Called before a message is sent to a worker, which the core has to know. */
  #mind(worker: WorkerId): void {
    const isKnown = [this.state, this.#unchecked?.before].some((each) => each?.workers.get(worker));
    if (!isKnown) this.#broken ??= new Broken('nobody speaks to a process that is gone', worker);
  }

  #warned({ message, error }: { readonly message: string; readonly error?: unknown }): void {
    if (error === undefined || JSON.stringify(error).includes(EAGAIN)) return;
    this.#broken ??= new Broken(
      'the shell carries out every effect',
      `${message}: ${JSON.stringify(error)}`,
    );
  }

  readonly #send = (process: SimulatedProcess, message: unknown, sent: () => void): void => {
    const { type } = message as { readonly type: string };
    const isVital = DECISIVE.has(type as never) || ['ping', 'lead'].includes(type);
    this.#sent += 1;
    if (this.#fails && !isVital && this.#sent % EVERY === 0) throw new Error(EAGAIN);
    const channel = this.#channels.get(process.id)!;
    channel.unread += 1;
    process.receive(message as never, () => {
      channel.unread -= 1;
      sent();
    });
  };

  /** Sends a signal. If the process is unkillable, also reports that the signal was refused. */
  #kill(process: SimulatedProcess, signal: NodeJS.Signals): void {
    process.signal(signal);
    if (!process.behaviour.unkillable) return;
    this.#hear(process.id, { type: 'channel-error', error: new Error('kill EPERM') });
  }

  get #fails(): boolean {
    return this.world.scenario.sendFails && !this.world.healed;
  }

  /** Returns a thenable that resolves in simulated time. */
  #closed(): Promise<void> {
    const then = (closed: () => void) =>
      void this.world.clock.in(this.#fails ? LATE_MS : 0, closed);
    // oxlint-disable-next-line unicorn/no-thenable -- a promise would not resolve in simulated time
    return { then } as unknown as Promise<void>;
  }
}

const EAGAIN = 'write EAGAIN';

const ENVELOPE = { ns: 'nestjs-cluster', v: 1 };

function same(a: readonly string[], b: readonly string[]): boolean {
  return [...a].sort().join() === [...b].sort().join();
}
