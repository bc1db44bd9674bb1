import { isatty } from 'node:tty';
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
  checkScale,
  MAX_WORKERS,
  type ResolvedClusterOptions,
} from '../../contract/options/index.js';
import { Control } from '../../control/open-control.js';
import { isTickLate } from '../../supervisor/decide/policies/heartbeat.policy.js';
import { takeActivatedSocket } from '../../supervisor/listening/activated-socket.js';
import { DeferredListening } from '../../supervisor/listening/deferred-listening.js';
import type { Listening } from '../../supervisor/listening/listening.interface.js';
import { openListening } from '../../supervisor/listening/open-listening.js';
import { SharedListening } from '../../supervisor/listening/shared-listening.js';
import { Program } from '../../supervisor/processes/release.js';
import { keepYoungGenerationSmall } from '../../supervisor/processes/v8-flags.js';
import { Supervisor } from '../../supervisor/supervisor.js';
import type { PrimaryRuntime } from '../cluster-runtime.interface.js';
import { setTitle } from '../../contract/process/process-title.js';
import { endTelemetry } from '../../contract/process/telemetry.js';
import { NO_HTTP_SERVER } from '../no-http-server.js';
import { guardOutput } from '../guard-output.js';
import { exitCodeAfterStop } from '../stay-stopped.js';
import { tellOfListener } from '../tell-of-listener.js';

type Warn = (message: string) => void;

/** The maximum time for the OpenTelemetry SDK of the primary to end. Nothing waits for the SDK. */
const TELEMETRY_MS = 5_000;

/** Signals that ask the cluster to end. */
const STOP_SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/** Signals that add or remove a worker, as in Unicorn, Puma and Gunicorn. */
const SCALE_SIGNALS = { SIGTTIN: 1, SIGTTOU: -1 } as const;

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
  keepYoungGenerationSmall();
  // Ends an OpenTelemetry SDK that is preloaded in the primary as in each worker. The primary has no
  // traces, and the workers need the ports that the SDK has opened.
  void endTelemetry(TELEMETRY_MS);
  const output = guardOutput(options.log);
  const startedAt = performance.now();
  const log = createEventLog(options.log, output, withSourcePlaces);
  const listeners = new EventListeners(tellOfListener(log), options.on);
  let tellWorkers: EmitEvent | undefined;
  const emit = announce(
    options.bootLogs === 'all' ? log : quietLog(log),
    (name, event) => {
      listeners.call(name, event);
      tellWorkers?.(name, event);
    },
    new FirstStart(options.workers),
  );
  const warn = (message: string) => emit('warning', { message });
  const listening = await openSockets(options, warn);
  setTitle('primary nestjs-cluster', 'primary');

  const program = new Program(
    { script: process.argv[1], cwd: process.cwd(), pwd: process.env['PWD'] },
    warn,
  );
  const supervisor = new Supervisor(options, listening, program, emit, output.dropped);
  ({ tellWorkers } = supervisor);
  const adminUrl = await openAdmin(options, supervisor, warn);
  const control = openControl(options, supervisor, listeners, warn);
  await informSystemd(options, supervisor, listeners, warn);
  obeySignals(supervisor, emit);
  emit('starting', { workers: options.workers, pid: process.pid, node: process.versions.node });
  if (lacking !== undefined) warn(lacking);
  supervisor.start();
  const ended = supervisor.ended.then(async (outcome) =>
    end(outcome, startedAt, await control, emit),
  );
  const served = await supervisor.serving;
  await control;
  const { workers } = options;
  const { ports, balancing } = listening;
  const { endpoints } = served;
  const url = withPort(served.url, ports[0]);
  if (url === null && options.addressGiven) warn(NO_HTTP_SERVER);
  // Emitted in a later turn, so that the caller of bootstrap() can attach its listeners first.
  setImmediate(() => emit('listening', { url, workers, balancing, ports, endpoints, adminUrl }));
  return runtimeOf(supervisor, listeners, ended);
}

/** @throws ClusterAddressError, ClusterConfigurationError */
async function openSockets(options: ResolvedClusterOptions, warn: Warn): Promise<Listening> {
  const activated = takeActivatedSocket(options, warn);
  if (activated !== undefined) return new SharedListening('shared', activated);
  return options.addressGiven ? openListening(options) : new DeferredListening(options);
}

async function informSystemd(
  { heartbeat }: ResolvedClusterOptions,
  { snapshot, lastBeatAt }: Supervisor,
  listeners: EventListeners,
  warn: Warn,
): Promise<void> {
  if (!process.env['NOTIFY_SOCKET']) return;
  // Loaded only here, because most clusters do not tell systemd their state.
  const { tellSystemd } = await import('../tell-systemd.js');
  const isWell = () => !isTickLate(lastBeatAt(), performance.now(), heartbeat.intervalMs);
  tellSystemd(listeners, { workers: snapshot, isWell, warn });
}

/** @throws ClusterAddressError */
async function openAdmin(
  { admin }: ResolvedClusterOptions,
  supervisor: Supervisor,
  warn: Warn,
): Promise<string | null> {
  if (admin === undefined) return null;
  // Loaded only here, because most clusters have no admin listener.
  const { AdminListener } = await import('../../observe/admin/admin-listener.js');
  return AdminListener.open(admin, supervisor, warn);
}

/** Never rejects, because a cluster also serves without a control socket. */
async function openControl(
  options: ResolvedClusterOptions,
  cluster: Supervisor,
  events: EventListeners,
  warn: Warn,
): Promise<Control | undefined> {
  // No socket on Windows: named pipes have no owner and no mode, so access could not be restricted.
  if (options.control === undefined || process.platform === 'win32') return undefined;
  return Control.open({ cluster, events, options }, warn);
}

/** @param outcome the exit code without a process manager. */
async function end(
  outcome: number,
  startedAt: number,
  control: Control | undefined,
  emit: EmitEvent,
): Promise<never> {
  const exitCode = control?.stopAsked ? exitCodeAfterStop(outcome) : outcome;
  emit('stopped', { exitCode, uptimeMs: performance.now() - startedAt });
  await control?.end(outcome);
  process.exit(exitCode);
}

function obeySignals(supervisor: Supervisor, emit: EmitEvent): void {
  // Checked at the start, because isatty() returns false once the terminal is closed and SIGHUP comes.
  const inTerminal = isatty(0);
  for (const signal of STOP_SIGNALS) {
    process.on(signal, () => supervisor.stop(signal, signal));
  }
  process.on('SIGHUP', () => {
    // In a terminal, SIGHUP means that the terminal was closed, so the program ends and does not reload.
    if (inTerminal) supervisor.stop('SIGHUP in a terminal', 'SIGHUP');
    else void supervisor.reload('SIGHUP');
  });
  for (const [signal, step] of Object.entries(SCALE_SIGNALS)) {
    process.on(signal, () => {
      const workers = supervisor.snapshot().desired + step;
      const refuse = (why: string) => emit('warning', { message: `${signal}: ${why}` });
      if (workers < 1 || workers > MAX_WORKERS) return refuse(`there cannot be ${workers} workers`);
      supervisor.scale(workers, signal).catch((error: Error) => refuse(error.message));
    });
  }
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
    scale: async (workers) =>
      supervisor.scale(checkScale(workers, supervisor.snapshot().autoscaling), 'scale()'),
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
