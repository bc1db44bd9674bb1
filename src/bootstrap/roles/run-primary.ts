import { setFlagsFromString } from 'node:v8';
import { ClusterConfigurationError } from '../../contract/errors/index.js';
import { withSourcePlaces } from '../../contract/errors/source-files.js';
import {
  createEventLog,
  type EmitEvent,
  EventListeners,
  FirstStart,
  quietLog,
  UNLOGGED,
  workerExitIn,
} from '../../contract/events/index.js';
import {
  checkSlot,
  checkWorkerCount,
  type ResolvedClusterOptions,
} from '../../contract/options/index.js';
import { transition } from '../../decide/transition.js';
import { forkWorker } from '../../primary/fork-worker.js';
import { takeActivatedSocket } from '../../primary/listening/activated-socket.js';
import { ClusterAcceptors, Listening } from '../../primary/listening/listening.js';
import { Program } from '../../primary/release.js';
import { PackageThreads } from '../../primary/package-threads.js';
import { Supervisor } from '../../primary/supervisor.js';
import type { PrimaryRuntime } from '../cluster-runtime.interface.js';
import { setTitle } from '../../contract/process/process-title.js';
import { endTelemetry } from '../../contract/process/telemetry.js';
import { NO_HTTP_SERVER } from '../no-http-server.js';
import { guardOutput } from '../guard-output.js';
import { tellOfListener } from '../tell-of-listener.js';
import { obeySignals } from './obey-signals.js';
import { Control } from '../../control/open-control.js';
import { isTickLate } from '../../decide/policies/heartbeat.policy.js';

type Warn = (message: string) => void;

/** The maximum time for the OpenTelemetry SDK of the primary to end. Nothing waits for the SDK. */
const TELEMETRY_MS = 5_000;

/**
 * Runs the primary: binds the address, forks and supervises workers, and ends the process.
 *
 * @param lacking what the cluster does without, and why.
 * @throws ClusterAddressError, ClusterConfigurationError before any worker is forked.
 */
export async function runPrimary(
  options: ResolvedClusterOptions,
  lacking?: string,
): Promise<PrimaryRuntime> {
  if (process.argv[1] === undefined) {
    throw new ClusterConfigurationError(
      'workers run the script of the primary, and there is none (node -e, or a REPL); put the code into a file, or set workers to 0',
    );
  }
  // Without it, V8's young generation grows while metrics are scraped, and does not shrink: the
  // primary of two workers then had 95 MB instead of 67 MB on Node 20.
  setFlagsFromString('--semi-space-growth-factor=1');
  // Ends an OpenTelemetry SDK that is preloaded in the primary as in each worker. The primary has no
  // traces, and the workers need the ports that the SDK has opened.
  void endTelemetry(TELEMETRY_MS);
  const startedAt = performance.now();
  const { output, listeners, emit, tellAlso } = openEvents(options);
  const warn = (message: string) => emit('warning', { message });
  const listening = await openSockets(options, warn);
  setTitle('primary nestjs-cluster', 'primary');

  const [, script] = process.argv;
  const program = new Program({ script, cwd: process.cwd(), pwd: process.env['PWD'] });
  const acceptors = new ClusterAcceptors();
  const threads = new PackageThreads(emit, () => program.resolve().script);
  const outside = { decide: transition, startProcess: forkWorker, acceptors, threads };
  const supervisor = new Supervisor(options, listening, program, emit, output.dropped, outside);
  tellAlso(supervisor.tellWorkers);
  const doors = new Doors(inForce(options, listening), supervisor, listeners, emit);
  await doors.openAdmin();
  doors.openControl();
  await doors.informSystemd();
  obeySignals(supervisor, emit);
  emit('starting', { workers: options.workers, pid: process.pid, node: process.versions.node });
  if (lacking !== undefined) warn(lacking);
  supervisor.start();
  const ended = supervisor.ended.then((exitCode) => end(exitCode, startedAt, doors, emit));
  const served = await supervisor.serving;
  await doors.control;
  const { workers } = options;
  const { ports, balancing } = listening;
  const { endpoints } = served;
  const url = withPort(served.url, ports[0]);
  const { adminUrl } = doors;
  if (url === null && options.addressGiven) warn(NO_HTTP_SERVER);
  // Emitted in a later turn, so that the caller of bootstrap() can attach its listeners first.
  setImmediate(() => emit('listening', { url, workers, balancing, ports, endpoints, adminUrl }));
  return runtimeOf(supervisor, listeners, ended);
}

/** The options with the address that systemd has passed, if it has passed one. */
function inForce(options: ResolvedClusterOptions, { sockets: [socket] }: Listening) {
  return socket?.target.activated ? { ...options, address: socket.target } : options;
}

function openEvents(options: ResolvedClusterOptions) {
  const output = guardOutput(options.log);
  const log = createEventLog(options.log, output, withSourcePlaces);
  const listeners = new EventListeners(tellOfListener(log), options.on);
  let tellWorkers: EmitEvent | undefined;
  const emit = announce(
    options.log.level === 'debug' ? log : quietLog(log),
    (name, event) => {
      listeners.call(name, event);
      tellWorkers?.(name, event);
    },
    new FirstStart(options.workers),
  );
  return { output, listeners, emit, tellAlso: (tell: EmitEvent) => (tellWorkers = tell) };
}

/** @throws ClusterAddressError, ClusterConfigurationError */
async function openSockets(options: ResolvedClusterOptions, warn: Warn): Promise<Listening> {
  const socket = takeActivatedSocket(options, warn);
  const listening = new Listening(options, socket);
  if (socket === undefined && options.addressGiven) await listening.open();
  return listening;
}

async function end(
  exitCode: number,
  startedAt: number,
  doors: Doors,
  emit: EmitEvent,
): Promise<never> {
  const control = await doors.control;
  emit('stopped', { exitCode, uptimeMs: performance.now() - startedAt });
  await control?.end(exitCode);
  process.exit(exitCode);
}

/** Puts the port of slot 0 into the URL, because any worker may have been ready first. */
function withPort(url: string | null, port: number | undefined): string | null {
  return url === null || port === undefined ? url : url.replace(/:\d+$/, `:${port}`);
}

function runtimeOf(
  supervisor: Supervisor,
  listeners: EventListeners,
  ended: Promise<never>,
): PrimaryRuntime {
  const runtime: PrimaryRuntime = {
    role: 'primary',
    snapshot: () => supervisor.snapshot(),
    reload: () => supervisor.reload('reload()'),
    scale: async (workers) => supervisor.scale(checkWorkerCount(workers), 'scale()'),
    restart: async (slot) => supervisor.restart(checkSlot(slot), 'restart()'),
    shutdown: () => {
      supervisor.stop('shutdown()');
      return ended;
    },
    on(name, listener) {
      listeners.on(name, listener);
      return runtime;
    },
    off(name, listener) {
      listeners.off(name, listener);
      return runtime;
    },
  };
  return runtime;
}

/** Logs each event, and then passes it to the listeners. */
function announce(log: EmitEvent, tell: EmitEvent, firstStart: FirstStart): EmitEvent {
  const emit: EmitEvent = (name, event) => {
    if (!UNLOGGED.has(name)) log(name, event);
    tell(name, event);
    const exit = workerExitIn(name, event);
    if (exit !== undefined) tell('worker-exit', exit);
    const started = firstStart.after(name, event);
    if (started !== undefined) emit('started', started);
  };
  return emit;
}

/** The ways by which others reach the primary itself: admin listener, control socket and systemd. */
class Doors {
  adminUrl: string | null = null;
  /** Resolves with `undefined` if the cluster has no control socket. */
  control: Promise<Control | undefined> = Promise.resolve(undefined);
  readonly #warn = (message: string): void => this.emit('warning', { message });

  constructor(
    private readonly options: ResolvedClusterOptions,
    private readonly supervisor: Supervisor,
    private readonly events: EventListeners,
    private readonly emit: EmitEvent,
  ) {}

  /** @throws ClusterAddressError */
  async openAdmin(): Promise<void> {
    const { admin } = this.options;
    if (admin === undefined) return;
    // Loaded only here, because most clusters have no admin listener.
    const { openAdminListener } = await import('../../observe/admin/admin-listener.js');
    this.adminUrl = await openAdminListener(admin, this.supervisor, this.#warn);
  }

  /** Never fails, because a cluster also serves without a control socket. */
  openControl(): void {
    const { options, supervisor: cluster } = this;
    // No socket on Windows: named pipes have no owner and no mode, so access could not be restricted.
    if (options.control === undefined || process.platform === 'win32') return;
    this.control = Control.open({ cluster, options }, this.#warn);
  }

  async informSystemd(): Promise<void> {
    if (!process.env['NOTIFY_SOCKET']) return;
    // Loaded only here, because most clusters do not tell systemd their state.
    const { tellSystemd } = await import('../tell-systemd.js');
    const { snapshot, lastBeatAt } = this.supervisor;
    const isWell = () => !isTickLate(lastBeatAt(), performance.now());
    tellSystemd(this.events, { workers: snapshot, isWell, warn: this.#warn });
  }
}
