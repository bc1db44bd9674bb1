import type { Server } from 'node:http';
import { constants } from 'node:os';
import { createEventLog } from '../events/index.js';
import type { ResolvedClusterOptions } from '../options/index.js';
import { BoundSocket } from '../primary/listening/bound-socket.js';
import { limitConnections } from '../worker/connection-limit.js';
import { drain, stopAccepting } from '../worker/drain.js';
import { presetExpressPrototypes } from '../worker/express-prototypes.js';
import { addressOf, ALREADY_LISTENING, listen } from '../worker/listen.js';
import { SoloLink } from '../worker/solo-link.js';
import type { CreateApp, StandaloneRuntime } from './cluster-runtime.interface.js';
import { setCurrentLink } from './current-link.js';
import { guardOutput } from './guard-output.js';

/** One process has no one to reload: SIGHUP ends it, but drained. */
const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/**
 * Runs the app in this process: same address, endpoints and drain as a cluster.
 *
 * @throws AddressUnavailableError, and whatever creating the app throws.
 */
export async function runStandalone(
  createApp: CreateApp,
  options: ResolvedClusterOptions,
): Promise<StandaloneRuntime> {
  const startedAt = performance.now();
  const output = guardOutput(options.logFormat);
  const emit = createEventLog(options.logFormat, output);
  if (options.admin !== undefined) {
    emit('warning', {
      message: 'there is no admin listener with workers: 0, since there is no primary; ask the app',
    });
  }
  const link = new SoloLink(true, output.dropped);
  setCurrentLink(link);
  const socket = await BoundSocket.open(options.address);
  const app = await createApp();
  if (options.expressPrototypes) presetExpressPrototypes(app);
  const server = app.getHttpServer() as Server;
  link.local.follow(server);
  let url: string;
  if (server.listening) {
    emit('warning', { message: ALREADY_LISTENING });
    socket.close();
    url = addressOf(server);
  } else {
    await app.init();
    url = await listen(app, socket.target, socket.handle);
  }
  limitConnections(server, link.local.tracker, (message) => emit('warning', { message }));
  link.local.state = 'ready';
  const { endpoints } = link.local;
  emit('listening', { url, workers: 0, balancing: 'none', ports: [], endpoints, adminUrl: null });

  let force!: () => void;
  const forced = new Promise<void>((resolve) => (force = resolve));
  let drained: Promise<number> | undefined;
  const shutdown = (): Promise<number> => {
    link.local.state = 'draining';
    drained ??= drain(
      app,
      link.local,
      { stopAccepting: () => stopAccepting(server) },
      options.shutdown,
      forced,
    ).then((report) => {
      setCurrentLink(undefined);
      if (report.hookError === null) return 0;
      emit('warning', { message: report.hookError });
      return 1;
    });
    return drained;
  };
  let signals = 0;
  const onSignal = (signal: NodeJS.Signals): void => {
    signals += 1;
    const forcedCode = 128 + constants.signals[signal];
    if (signals === 1) {
      emit('stopping', { reason: signal, workers: 0, force: 'drain' });
      void shutdown().then((exitCode) => {
        const code = signals > 1 ? forcedCode : exitCode;
        emit('stopped', { exitCode: code, uptimeMs: performance.now() - startedAt });
        process.exit(code);
      });
    } else if (signals === 2) {
      emit('stopping', { reason: signal, workers: 0, force: 'destroy' });
      force();
    } else {
      process.exit(forcedCode);
    }
  };
  for (const signal of STOP_SIGNALS) process.on(signal, onSignal);
  return {
    role: 'standalone',
    app,
    url,
    shutdown: async () => {
      for (const signal of STOP_SIGNALS) process.off(signal, onSignal);
      await shutdown();
    },
  };
}
