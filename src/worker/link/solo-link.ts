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

/** How often the event loop is measured in a process without heartbeats. */
const MEASURE_MS = 1_000;

const NO_PRIMARY =
  'this process runs alone; start the app by bootstrap() with workers of 1 or more';

/** The link of a process without a primary. Answers every question for this process alone. */
export class SoloLink extends LocalLink implements ClusterLink {
  readonly workers = 1;
  readonly leaderRole: LeaderRole;
  readonly #timer: NodeJS.Timeout;
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
    const workers = [
      { slot: this.identity.slot, generation: this.identity.generation, ...metrics },
    ];
    return { snapshot: this.ownSnapshot(), workers, retired: [] };
  }

  // Only a primary asks for the app's health or takes a report.
  provideHealth(): void {}
  reportBootFailure(): void {}

  async reload(): Promise<ReloadResult> {
    throw new ClusterNoPrimaryError('reload()', NO_PRIMARY);
  }

  async scale(): Promise<ClusterSnapshot> {
    throw new ClusterNoPrimaryError('scale()', NO_PRIMARY);
  }

  async restart(): Promise<RestartResult> {
    throw new ClusterNoPrimaryError('restart()', NO_PRIMARY);
  }

  attach(server: unknown): void {
    this.#apps += 1;
    if (server !== undefined) this.followServer(server as Server);
    if (this.state !== 'starting') return;
    this.state = 'ready';
    this.meter.restart();
    this.idleWork.start();
  }

  detach(): void {
    this.#apps -= 1;
    if (this.#apps <= 0) this.end();
  }

  /** Ends the measurements: the process no longer serves. */
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
    follow: (told) => told({ isFirst: true, done: [] }),
    begun: () => {},
  };
}
