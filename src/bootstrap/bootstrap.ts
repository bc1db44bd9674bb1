import { setTimeout as sleep } from 'node:timers/promises';
import { ClusterConfigurationError, ClusterError } from '../contract/errors/errors.js';
import { EventListeners } from '../contract/log/event-listeners.js';
import { createEventLog } from '../contract/log/log.js';
import {
  type ClusterOptions,
  logFormatIn,
  type ResolvedClusterOptions,
  resolveOptions,
} from '../contract/options/resolve.js';
import { COMMON_JS } from '../contract/options/common-js.js';
import { show } from '../contract/options/checks.js';
import { noteAppImport } from '../contract/snapshot/app-import.js';
import { currentLink } from '../contract/snapshot/current-link.js';
import type { ClusterLink } from '../contract/snapshot/types.js';
import type {
  AppFactory,
  AppOf,
  ClusterRuntime,
  StandaloneRuntime,
} from './cluster-runtime.interface.js';
import { detectRole, type Role } from './roles/role.js';
import type { Examine } from './roles/run-standalone.js';

const NO_WORKERS_HERE =
  'bootstrap() cannot start workers from the CommonJS build of nestjs-cluster, which is only for Jest: a worker would run Jest again; in a test, set workers: 0, or start the built main file in its own process; outside of tests, exclude nestjs-cluster from the bundle (ncc: -e nestjs-cluster), and start node without --no-experimental-require-module';

/** `nestjs-cluster-tools doctor` sets this global function before the program starts. */
const EXAMINE = Symbol.for('nestjs-cluster.examine');

/** The exit is delayed by this time, so that pm2 can write the last line. */
const PM2_WRITES_MS = 200;

/**
 * Runs a Nest app on every core. Pass a function that creates the app and does not call `listen()`.
 * The app can also be a microservice or an application context.
 *
 * The first process becomes the primary. It binds the address, forks workers that run the same
 * script, and replaces workers that fail. Each worker creates and serves the app. With `workers: 0`,
 * the app runs in this process. In a thread, or in a process that a worker has started, the function
 * does nothing.
 *
 * If startup fails, the process logs one line at the level `error` and exits. The exit code is 78
 * for a wrong option or variable, 69 if the process cannot listen on the address, and 70 if no
 * worker becomes ready.
 *
 * @returns when the first worker is ready.
 */
export async function bootstrap<F extends AppFactory>(
  createApp: F,
  options: ClusterOptions = {},
): Promise<ClusterRuntime<AppOf<Awaited<ReturnType<F>>>>> {
  let role: Role | undefined;
  let resolved: ResolvedClusterOptions | undefined;
  try {
    role = detectRole();
    if (role.name === 'bystander') {
      noteAppImport(createApp);
      return { role: 'bystander' };
    }
    if (typeof createApp !== 'function') {
      throw new ClusterConfigurationError(
        `invalid createApp: bootstrap() expects a function that creates the app, but got ${show(createApp)}; write bootstrap(() => NestFactory.create(AppModule), options)`,
      );
    }
    resolved = resolveOptions(role.name === 'worker' ? withoutToken(options) : options);
    // Each role loads only the files that it needs, to save memory in the primary.
    const examine = (globalThis as { [EXAMINE]?: Examine })[EXAMINE];
    if (role.name === 'parent' && (examine !== undefined || resolved.workers === 0)) {
      const { runExamined, runStandalone } = await import('./roles/run-standalone.js');
      const runtime = examine
        ? await runExamined(createApp, resolved, examine)
        : await runStandalone(createApp, resolved);
      return runtime as StandaloneRuntime<AppOf<Awaited<ReturnType<F>>>>;
    }
    // A ClusterError would exit the test runner. A plain Error only fails the test.
    if (COMMON_JS) throw new Error(NO_WORKERS_HERE);
    if (role.name === 'worker') {
      const { runWorker } = await import('./roles/run-worker.js');
      return await runWorker(createApp, resolved, role.assignment);
    }
    // Node caches only files that are loaded after this.
    const { openCompileCache } = await import('../contract/process/compile-cache.js');
    const cacheProblem = openCompileCache();
    const { runPrimary } = await import('./roles/run-primary.js');
    return await runPrimary(resolved, cacheProblem);
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    const { message, exitCode } = error;
    // Ignores the option `log.write`, because the options may be invalid.
    const format = logFormatIn(options);
    const log = createEventLog({ format, level: 'info', write: undefined });
    const failed = { message, exitCode, error: null };
    log('failed', failed);
    new EventListeners(
      (about, cause) => log('warning', { message: about, error: cause }),
      resolved?.on,
    ).call('failed', failed);
    // detectRole() throws in pm2's cluster mode. pm2 writes the line with a delay.
    if (role === undefined) await sleep(PM2_WRITES_MS);
    process.exit(exitCode);
  }
}

/**
 * Skips the admin token check in a worker. Workers have no admin listener and do not get the token.
 */
function withoutToken(options: ClusterOptions): ClusterOptions {
  return { ...options, admin: { port: '0', ...options.admin, token: false } };
}

/** The link that `bootstrap()` created in this process, otherwise a new link without a primary. */
export async function linkOfProcess(): Promise<ClusterLink> {
  const link = currentLink();
  if (link !== undefined) return link;
  const { ProcessLink } = await import('../worker/link/process-link.js');
  return new ProcessLink();
}
