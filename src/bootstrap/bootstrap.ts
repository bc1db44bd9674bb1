import { ClusterConfigurationError, ClusterError } from '../contract/errors/index.js';
import { createEventLog, EventListeners } from '../contract/events/index.js';
import {
  type ClusterOptions,
  COMMON_JS,
  logFormatIn,
  type ResolvedClusterOptions,
  resolveOptions,
  show,
} from '../contract/options/index.js';
import type {
  AppOf,
  AppSource,
  ClusterRuntime,
  CreateAppContext,
} from './cluster-runtime.interface.js';
import { detectRole } from './roles/role.js';
import { tellOfListener } from './tell-of-listener.js';

const NO_WORKERS_HERE =
  'bootstrap() cannot start workers here: this is the CommonJS build of nestjs-cluster, for tests in Jest, where a worker would be another Jest; set workers: 0, or start the built main file as a process of its own; if this is no test, start node without --no-experimental-require-module';

/**
 * Runs a Nest app on every core: wrap what creates the app in it and leave out `listen()`. A
 * microservice and an application context are apps, too.
 *
 * The first process becomes the primary: it binds the address, forks workers that run the same
 * script, and keeps them up. In a worker the app is created and serves. With `workers: 0` it runs
 * in this process. In a thread, or in a process that a worker started, nothing happens.
 *
 * A start that cannot work ends the process with one line at the level `error`: exit code 78 for an
 * option or variable that is wrong, 69 for an address that cannot be listened on, 70 if workers do
 * not come up.
 *
 * @returns once the app is being served, by the first worker that is ready.
 */
export async function bootstrap<S extends AppSource>(
  createApp: (context: CreateAppContext) => Promise<S> | S,
  options: ClusterOptions = {},
): Promise<ClusterRuntime<AppOf<S>>> {
  let resolved: ResolvedClusterOptions | undefined;
  try {
    const role = detectRole();
    if (role.name === 'bystander') return { role: 'bystander' };
    if (typeof createApp !== 'function') {
      throw new ClusterConfigurationError(
        `invalid createApp: bootstrap() takes a function that creates the app, and got ${show(createApp)}; write bootstrap(() => NestFactory.create(AppModule), options)`,
      );
    }
    resolved = resolveOptions(role.name === 'worker' ? withoutToken(options) : options);
    // Each role loads only what it needs: it keeps the primary small.
    if (role.name === 'parent' && resolved.workers === 0) {
      const { runStandalone } = await import('./roles/run-standalone.js');
      return await runStandalone(createApp, resolved);
    }
    // No ClusterError: that would end the test runner, and this fails the test.
    if (COMMON_JS) throw new Error(NO_WORKERS_HERE);
    if (role.name === 'worker') {
      const { runWorker } = await import('./roles/run-worker.js');
      return await runWorker(createApp, resolved, role.assignment);
    }
    // First: loading files is what makes code hot.
    const { leaveTurbofanOut } = await import('../supervisor/processes/v8-flags.js');
    leaveTurbofanOut(resolved);
    const { runPrimary } = await import('./roles/run-primary.js');
    return await runPrimary(resolved);
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    const { message, exitCode } = error;
    // Not by the user's function: the options that it is in may be what is wrong.
    const format = logFormatIn(options);
    const log = createEventLog({ format, level: 'info', write: undefined });
    const failed = { message, exitCode, error: null };
    log('failed', failed);
    new EventListeners(tellOfListener(log), resolved?.on).call('failed', failed);
    process.exit(exitCode);
  }
}

/** A worker has no admin listener, and is not given the token of it. */
function withoutToken(options: ClusterOptions): ClusterOptions {
  const { admin } = options ?? {};
  return admin ? { ...options, admin: { ...admin, token: false } } : options;
}
