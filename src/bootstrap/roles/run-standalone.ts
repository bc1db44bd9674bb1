import type { INestApplicationContext } from '@nestjs/common';
import type { Server } from 'node:http';
import { constants } from 'node:os';
import { createEventLog, type EmitEvent, EventListeners } from '../../contract/events/index.js';
import type { ResolvedClusterOptions } from '../../contract/options/index.js';
import { BoundSocket } from '../../supervisor/listening/bound-socket.js';
import { whenFree } from '../../contract/process/when-free.js';
import { AppEnd, type LeaveSteps } from '../../worker/drain/app-end.js';
import { settleAsyncContexts } from '../../worker/life/async-contexts.js';
import { bringUp } from '../../worker/boot/bring-up.js';
import { connectionLimit } from '../../worker/http/connection-limit.js';
import { presetExpressPrototypes } from '../../worker/http/express-prototypes.js';
import { HttpServers } from '../../worker/listen/http-servers.js';
import { emptySockets, expectClose } from '../../worker/drain/leave-sockets.js';
import { listen } from '../../worker/listen/listen.js';
import { HOOKS_TAKEN_OVER, takeOverNestSignals } from '../../worker/life/nest-signals.js';
import { SoloLink } from '../../worker/link/solo-link.js';
import { isHttpApp, type WorkerApp } from '../../worker/life/worker-app.interface.js';
import type {
  AppOf,
  AppSource,
  CreateAppContext,
  StandaloneRuntime,
} from '../cluster-runtime.interface.js';
import { createAppBy } from '../create-app.js';
import { setCurrentLink } from '../../contract/snapshot/current-link.js';
import { NO_HTTP_SERVER } from '../no-http-server.js';
import { guardOutput } from '../guard-output.js';
import { tellOfListener } from '../tell-of-listener.js';

/** One process has no one to reload: SIGHUP ends it, but drained. */
const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/**
 * Runs the app in this process: same address, endpoints and drain as a cluster.
 *
 * @throws AddressUnavailableError, and whatever creating the app throws.
 */
export async function runStandalone<S extends AppSource>(
  createApp: (context: CreateAppContext) => Promise<S> | S,
  options: ResolvedClusterOptions,
): Promise<StandaloneRuntime<AppOf<S>>> {
  const startedAt = performance.now();
  settleAsyncContexts();
  const output = guardOutput(options.log);
  const log = createEventLog(options.log, output);
  const link = new SoloLink(true, output.dropped, (message) => log('warning', { message }));
  const listeners = new EventListeners(tellOfListener(log), options.on);
  const emit: EmitEvent = (name, event) => {
    log(name, event);
    listeners.call(name, event);
    link.events.call(name, event);
  };
  if (options.admin !== undefined) {
    emit('warning', {
      message: 'there is no admin listener with workers: 0, since there is no primary; ask the app',
    });
  }
  link.follow(options);
  setCurrentLink(link);
  const warn = (message: string): void => emit('warning', { message });
  const limit = connectionLimit(link.local.tracker, warn);
  const servers = new HttpServers(
    (server) => link.local.follow(server),
    (server) => limit.applyTo(server),
  );
  const appEnd = new AppEnd();
  let signals = 0;
  let stop: ((signal: NodeJS.Signals) => void) | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    // Until the app is up there is nothing to drain.
    if (stop === undefined) process.exit(128 + constants.signals[signal]);
    stop(signal);
  };
  let hooksTold = false;
  const leaveSignalsToNest = takeOverNestSignals(STOP_SIGNALS, onSignal, () => {
    if (!hooksTold) emit('warning', { message: HOOKS_TAKEN_OVER });
    hooksTold = true;
  });
  /** The process may go on, and start another app: test suites do. */
  const letGo = (): void => {
    setCurrentLink(undefined);
    servers.stop();
    leaveSignalsToNest();
    for (const signal of STOP_SIGNALS) process.off(signal, onSignal);
    // Without ClusterModule nobody else does.
    link.end();
  };
  const created = (app: WorkerApp): void => {
    if (isHttpApp(app)) {
      if (options.expressPrototypes) presetExpressPrototypes(app);
      servers.add(app.getHttpServer() as Server);
    }
    appEnd.created(app);
  };
  const create = () => createAppBy(createApp, { worker: link.identity });
  const { app, url } = await serve(create, created, options, warn).catch((error: unknown) => {
    letGo();
    throw error;
  });
  link.local.state = 'ready';

  let drained: Promise<number> | undefined;
  const shutdown = (signal?: string): Promise<number> => {
    appEnd.signal ??= signal;
    link.local.state = 'draining';
    const steps: LeaveSteps = {
      stopAccepting: (atOnce, rpc) => {
        for (const server of servers.further) expectClose(server);
        return emptySockets([...servers.all, ...rpc], Promise.resolve(), atOnce);
      },
    };
    drained ??= appEnd.drain(link.local, steps, options.shutdown).then((report) => {
      letGo();
      const reset = report.unacceptedConnections;
      if (reset > 0) {
        emit('warning', { message: `reset ${reset} connections that were not accepted in time` });
      }
      if (report.hookError === null) return 0;
      emit('warning', { message: report.hookError });
      return 1;
    });
    return drained;
  };
  appEnd.takeOver(app, { leave: shutdown, warn });
  stop = (signal) => {
    signals += 1;
    const forcedCode = 128 + constants.signals[signal];
    if (signals === 1) {
      emit('stopping', { reason: signal, workers: 0, force: 'drain' });
      void shutdown(signal).then(async (exitCode) => {
        await appEnd.endTelemetry(options.shutdown);
        const code = signals > 1 ? forcedCode : exitCode;
        emit('stopped', { exitCode: code, uptimeMs: performance.now() - startedAt });
        process.exit(code);
      });
    } else if (signals === 2) {
      emit('stopping', { reason: signal, workers: 0, force: 'destroy' });
      appEnd.force();
    } else {
      process.exit(forcedCode);
    }
  };
  for (const signal of STOP_SIGNALS) process.on(signal, onSignal);
  if (options.doctor.warnings) {
    const { startWarnings } = await import('../../observe/findings/start-warnings.js');
    startWarnings(app, options.doctor.ignore, { workers: 1 }).forEach(warn);
  }
  if (url === null && options.addressGiven) warn(NO_HTTP_SERVER);
  // A reader of this line may send a signal next.
  const { endpoints } = link.local;
  emit('listening', { url, workers: 0, balancing: 'none', ports: [], endpoints, adminUrl: null });
  return {
    role: 'standalone',
    app,
    url: url as StandaloneRuntime<AppOf<S>>['url'],
    shutdown: async () => {
      for (const signal of STOP_SIGNALS) process.off(signal, onSignal);
      await shutdown();
    },
  };
}

/** Creates the app, and has it listen on its address, if it has an HTTP server. */
async function serve<App extends INestApplicationContext>(
  createApp: () => Promise<App>,
  created: (app: App) => void,
  { address, addressGiven }: ResolvedClusterOptions,
  warn: (message: string) => void,
): Promise<{ readonly app: App; readonly url: string | null }> {
  const open = () => whenFree(() => BoundSocket.open(address));
  // An app without an HTTP server does not need the default address.
  let socket = addressGiven ? await open() : undefined;
  let taken = false;
  try {
    const app = await createApp();
    created(app);
    const url = await bringUp(app, {
      enter: () => {},
      listen: async (httpApp) => {
        socket ??= await open();
        taken = true; // from here on the socket is the server's
        return listen(httpApp, socket.target, socket.handle);
      },
      warn,
    });
    return { app, url };
  } finally {
    if (!taken) socket?.close();
  }
}
