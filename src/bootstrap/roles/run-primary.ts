import { isatty } from 'node:tty';
import { setFlagsFromString } from 'node:v8';
import { ClusterConfigurationError, OnceAMinute } from '../../contract/errors/errors.js';
import { Announcer } from '../../contract/log/announce.js';
import { EventListeners } from '../../contract/log/event-listeners.js';
import type { EmitEvent } from '../../contract/log/events.js';
import { createEventLog } from '../../contract/log/log.js';
import {
  checkSlot,
  checkWorkerCount,
  type ResolvedClusterOptions,
} from '../../contract/options/resolve.js';
import { MAX_WORKERS } from '../../contract/options/checks.js';
import { availableCores } from '../../contract/process/machine.js';
import { collectStartGarbage } from '../../contract/process/process-meter.js';
import { transition } from '../../decide/transition.js';
import { forkWorker } from '../../primary/fork-worker.js';
import { takeActivatedSocket } from '../../primary/listening/activated-socket.js';
import { ClusterAcceptors, Listening } from '../../primary/listening/listening.js';
import { Program } from '../../primary/program.js';
import { PackageThreads } from '../../primary/package-threads.js';
import { Supervisor } from '../../primary/supervisor.js';
import type { PrimaryRuntime } from '../cluster-runtime.interface.js';
import { endTelemetry } from '../../contract/process/telemetry.js';
import { guardOutput } from '../../contract/process/guarded-output.js';
import { isTickLate } from '../../decide/worker/liveness.js';
import { ControlSocket } from '../../control/control-socket.js';
import { NO_HTTP_SERVER, setTitle } from './role.js';

type Warn = (message: string) => void;

/** Timeout for shutting down an OpenTelemetry SDK in the primary. It runs in the background. */
const TELEMETRY_MS = 5_000;

const STOP_SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/** As in Unicorn, Puma and Gunicorn. */
const SCALE_SIGNALS = { SIGTTIN: 1, SIGTTOU: -1 } as const;

/**
 * Runs the primary: binds the address, forks and supervises workers, and exits the process.
 *
 * @param cacheProblem why the compile cache is disabled.
 * @throws ClusterAddressError, ClusterConfigurationError before any worker is forked.
 */
export async function runPrimary(
  options: ResolvedClusterOptions,
  cacheProblem?: string,
): Promise<PrimaryRuntime> {
  if (process.argv[1] === undefined) {
    throw new ClusterConfigurationError(
      "workers run the primary's script file, but this process has none (node -e or a REPL); move the code into a file, or set workers: 0",
    );
  }
  // By default, V8's young generation grows during scrapes and never shrinks: a primary with two
  // workers then used 95 MB instead of 67 MB on Node 20.
  setFlagsFromString('--semi-space-growth-factor=1');
  // An OpenTelemetry SDK may be preloaded in every process. The primary has no traces, and its SDK
  // has opened ports that the workers need.
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
  const adminUrl = await openAdmin(options.admin, supervisor, warn);
  const control =
    options.control &&
    ControlSocket.open(supervisor, withActivatedAddress(options, listening), warn);
  await informSystemd(supervisor, listeners, warn);
  handleSignals(supervisor, emit);
  emit('starting', { workers: options.workers, pid: process.pid, node: process.versions.node });
  if (cacheProblem !== undefined) warn(cacheProblem);
  supervisor.start();
  const ended = supervisor.ended.then(async (exitCode): Promise<never> => {
    emit('stopped', { exitCode, uptimeMs: performance.now() - startedAt });
    await (await control)?.end(exitCode);
    process.exit(exitCode);
  });
  const { url: servedUrl, endpoints } = await supervisor.serving;
  await control;
  void collectStartGarbage();
  const { workers } = options;
  const { ports, balancing } = listening;
  // Always shows the port of slot 0, although another slot's worker may be ready first.
  const url = (ports[0] && servedUrl?.replace(/:\d+$/, `:${ports[0]}`)) || servedUrl;
  if (url === null && options.addressGiven) warn(NO_HTTP_SERVER);
  // Emitted later, so that the caller of bootstrap() can add its listeners first.
  setImmediate(() => emit('listening', { url, workers, balancing, ports, endpoints, adminUrl }));
  return runtimeOf(supervisor, listeners, ended);
}

/** The address of a socket from systemd replaces the address of the options. */
function withActivatedAddress(options: ResolvedClusterOptions, { sockets: [socket] }: Listening) {
  return socket?.target.activated ? { ...options, address: socket.target } : options;
}

function openEvents(options: ResolvedClusterOptions) {
  const output = guardOutput();
  const log = createEventLog(options.log, output);
  const listeners = new EventListeners(
    (message, error) => log('warning', { message, error }),
    options.on,
  );
  let tellWorkers: EmitEvent | undefined;
  const { emit } = new Announcer(
    options.workers,
    options.log.level !== 'debug',
    log,
    (...event) => {
      listeners.call(...event);
      tellWorkers?.(...event);
    },
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

/** @returns the URL of the admin listener. @throws ClusterAddressError */
async function openAdmin(
  admin: ResolvedClusterOptions['admin'],
  supervisor: Supervisor,
  warn: Warn,
): Promise<string | null> {
  if (admin === undefined) return null;
  // Loaded lazily, because most clusters have no admin listener.
  const { openAdminListener } = await import('../../observe/admin/admin-listener.js');
  return openAdminListener(admin, supervisor, warn);
}

async function informSystemd(
  { lastBeatAt }: Supervisor,
  events: EventListeners,
  warn: Warn,
): Promise<void> {
  if (!process.env['NOTIFY_SOCKET']) return;
  // Loaded lazily, because most clusters do not use Type=notify.
  const { tellSystemd } = await import('../tell-systemd.js');
  tellSystemd(events, () => !isTickLate(lastBeatAt(), performance.now()), warn);
}

export function handleSignals(supervisor: Supervisor, emit: EmitEvent): void {
  // Checked at startup, because isatty() returns false after the terminal was closed.
  const inTerminal = isatty(0);
  const refusals = new OnceAMinute((message) => emit('warning', { message }));
  const refuse = (signal: string, why: string) => refusals.say(`${signal}: ${why}`, signal);
  for (const signal of STOP_SIGNALS) {
    process.on(signal, () => supervisor.stop(signal, signal));
  }
  process.on('SIGHUP', () => {
    // In a terminal, SIGHUP means that the terminal was closed.
    if (inTerminal) return supervisor.stop('SIGHUP in a terminal', 'SIGHUP');
    if (supervisor.reloading) refuse('SIGHUP', 'a reload is already in progress');
    else void supervisor.reload('SIGHUP');
  });
  for (const [signal, step] of Object.entries(SCALE_SIGNALS)) {
    process.on(signal, () => {
      const workers = supervisor.snapshot().desired + step;
      // Without this limit, repeated signals could overload the machine.
      const most = Math.min(MAX_WORKERS, 4 * availableCores());
      if (workers < 1 || (step > 0 && workers > most)) {
        return refuse(signal, `cannot scale to ${workers} workers; 1 to ${most} are allowed`);
      }
      supervisor.scale(workers, signal).catch((error: Error) => refuse(signal, error.message));
    });
  }
}
