import type { Server } from 'node:http';
import { ClusterNoPrimaryError } from '../../contract/errors/index.js';
import type {
  AgedSnapshot,
  ClusterLink,
  ClusterSnapshot,
  CollectedMetrics,
  LeaderRole,
  ReloadResult,
  RestartResult,
} from '../../contract/snapshot/index.js';
import { LocalLink } from './local-link.js';

/** How often the event loop is measured where no heartbeat asks for it. */
const MEASURE_MS = 1_000;

const NO_PRIMARY =
  'this process runs alone; start the app by bootstrap() with workers of 1 or more';

/** The link of a process that has no primary: it answers for itself. */
export class SoloLink extends LocalLink implements ClusterLink {
  readonly workers = 1;
  /** There is nobody else. */
  readonly leaderRole: LeaderRole;
  readonly #timer: NodeJS.Timeout;
  /** Apps of this process that serve. */
  #apps = 0;

  constructor(
    readonly bootstrapped: boolean = false,
    droppedLogLines?: () => number,
    protected readonly say: (message: string) => void = () => {},
  ) {
    super({ slot: 0, pid: process.pid, generation: 0 }, 'none', droppedLogLines);
    this.leaderRole = soloLeader(this);
    this.#timer = setInterval(() => this.meter.measure(), MEASURE_MS).unref();
  }

  async snapshot(): Promise<AgedSnapshot> {
    return { snapshot: this.ownSnapshot(), ageMs: 0 };
  }

  async collectMetrics(): Promise<CollectedMetrics> {
    const metrics = await this.metrics.serialize();
    const workers = [{ slot: this.identity.slot, ...metrics }];
    return { snapshot: this.ownSnapshot(), workers, retired: [] };
  }

  provideHealth(): void {
    // Without a primary nobody asks.
  }

  async reload(): Promise<ReloadResult> {
    throw new ClusterNoPrimaryError('reload()', NO_PRIMARY);
  }

  async scale(): Promise<ClusterSnapshot> {
    throw new ClusterNoPrimaryError('scale()', NO_PRIMARY);
  }

  async restart(): Promise<RestartResult> {
    throw new ClusterNoPrimaryError('restart()', NO_PRIMARY);
  }

  requestReplacement(): void {
    // Nobody could take its place.
  }

  reportBootFailure(): void {
    // Nest has logged it, and there is nobody else to tell.
  }

  attach(server: unknown): void {
    this.#apps += 1;
    if (server !== undefined) this.followServer(server as Server);
    if (this.state !== 'starting') return;
    this.state = 'ready';
    this.meter.restart();
  }

  detach(): void {
    this.#apps -= 1;
    if (this.#apps <= 0) this.end();
  }

  /** The process serves no more, whatever is left of its apps. */
  end(): void {
    this.state = 'draining';
    clearInterval(this.#timer);
    this.meter.stop();
    this.tracker.unfollow();
  }
}

function soloLeader(link: LocalLink): LeaderRole {
  return {
    get leads() {
      return link.accepting;
    },
    owns: () => link.accepting,
    follow: (told) => told({ fresh: true, since: undefined, busy: [], done: [] }),
    tellRunning: () => {},
  };
}
