import type { DrainReport } from '../../contract/ipc/index.js';
import type { ResolvedClusterOptions } from '../../contract/options/index.js';
import { endTelemetry } from '../../contract/process/telemetry.js';
import { type ClosableApp, takeOverClose } from './app-close.js';
import { drain, type DrainSteps } from './drain.js';
import type { LocalProcess } from '../link/local-process.js';
import { type MicroserviceHost, Microservices } from '../microservices/microservices.js';
import { QueueWorkers } from './queue-workers.js';
import { dropTerminusDelay } from './terminus-delay.js';

/** The parts of an app that its end needs. */
export interface EndableApp extends ClosableApp, MicroserviceHost {}

/** The listeners to the end of an app. */
export interface EndPorts {
  /** The app closes itself: drains the process, and closes the app. */
  readonly leave: (signal: string | undefined) => Promise<unknown>;
  readonly warn: (message: string) => void;
}

/** The parts of a drain that belong to the process. */
export type LeaveSteps = Pick<DrainSteps, 'stopAccepting' | 'beforeClose'>;

/** For telemetry to be exported, though the app has used up the time of the drain. */
const LEAST_TELEMETRY_MS = 250;

/** The end of the app that this process serves: why, how hard, and what has to end before it. */
export class AppEnd {
  /** Why, for the app's shutdown hooks. */
  signal: string | undefined;
  /** The path for a heap snapshot. */
  snapshotTo: string | undefined;
  /** Ends its open connections now. */
  force!: () => void;
  readonly #forced = new Promise<void>((resolve) => (this.force = resolve));
  /** Ends the lame duck now. */
  cutShort!: () => void;
  readonly #cutShort = new Promise<void>((resolve) => (this.cutShort = resolve));
  readonly #microservices = new Microservices();
  #app: EndableApp | undefined;
  #closing: ClosableApp | undefined;
  #warn: EndPorts['warn'] = () => {};
  /** When all of it has to be over; monotonic ms. */
  #dueAt = 0;

  /** The app has been created: counts what its microservices have in hand. */
  created(app: MicroserviceHost): void {
    this.#microservices.follow(app);
  }

  /** The app is up: from now on it is closed by a drain alone. */
  takeOver(app: EndableApp, { leave, warn }: EndPorts): void {
    this.#microservices.follow(app); // its hooks may have connected some
    const delayed = dropTerminusDelay(app);
    if (delayed !== undefined) warn(delayed);
    this.#app = app;
    this.#warn = warn;
    this.#closing = takeOverClose(app, leave);
  }

  /** Drains the process, then closes the app. */
  drain(
    local: LocalProcess,
    steps: LeaveSteps,
    shutdown: ResolvedClusterOptions['shutdown'],
  ): Promise<DrainReport> {
    const { lameDuckMs, drainTimeoutMs, killTimeoutMs } = shutdown;
    this.#dueAt = performance.now() + lameDuckMs + drainTimeoutMs + killTimeoutMs;
    const own = {
      microservices: this.#microservices,
      queues: new QueueWorkers(this.#app),
      cutShort: this.#cutShort,
      signal: () => this.signal,
    };
    return drain(this.#closing!, local, { ...steps, ...own }, shutdown, this.#forced);
  }

  /** Sends the heap snapshot to its asker. No request is left that it could delay. */
  async leaveSnapshot(): Promise<void> {
    if (this.snapshotTo === undefined) return;
    const { sendHeapSnapshot } = await import('../watchdog/heap-snapshot.js');
    await Promise.race([sendHeapSnapshot(this.snapshotTo), this.#forced]);
  }

  /**
   * The last thing that happens in the process: exports what its requests and its hooks have left
   * of spans, metrics and logs.
   */
  async endTelemetry({ killTimeoutMs }: ResolvedClusterOptions['shutdown']): Promise<void> {
    const left = Math.min(this.#dueAt - performance.now(), killTimeoutMs);
    const problem = await endTelemetry(Math.max(left, LEAST_TELEMETRY_MS));
    if (problem !== undefined) this.#warn(problem);
  }
}
