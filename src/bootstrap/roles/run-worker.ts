import type { OwnAssignment } from '../../contract/process/assignment.js';
import type { ResolvedClusterOptions } from '../../contract/options/resolve.js';
import { WorkerAgent } from '../../worker/boot/agent.js';
import type { ProcessLink } from '../../worker/link/process-link.js';
import { quietStart } from '../../worker/boot/boot-output.js';
import { collectStartGarbage } from '../../contract/process/process-meter.js';
import { keepCompiled } from '../../contract/process/compile-cache.js';
import type { AppFactory, WorkerRuntime } from '../cluster-runtime.interface.js';
import { createAppBy } from '../create-app.js';
import { setCurrentLink } from '../../contract/snapshot/current-link.js';
import { guardOutput } from '../../contract/process/guarded-output.js';
import { setTitle } from './role.js';

/** Runs the app in a worker. Ends the process when the agent has nothing left to do. */
export async function runWorker(
  createApp: AppFactory,
  options: ResolvedClusterOptions,
  assignment: OwnAssignment,
): Promise<WorkerRuntime> {
  const { identity } = assignment;
  const output = guardOutput();
  const { slot, generation } = identity;
  setTitle(`worker=${slot} gen=${generation} nestjs-cluster`, `worker=${slot} gen=${generation}`);
  const agent = new WorkerAgent(assignment, options, output.dropped);
  setCurrentLink(agent.link);
  void agent.ended.then((exitCode) => process.exit(exitCode));
  const endQuiet = assignment.quiet === true ? await quietNest() : undefined;
  const { link } = agent;
  const app = await agent.run(() => createAppBy(createApp, { worker: identity }));
  endQuiet?.();
  if (app !== undefined && link.state === 'ready') {
    // After the event loop has handled the pending events.
    setImmediate(() => {
      warnOfFindings(app, link, options.warnings).catch((error: unknown) =>
        link.warn(`the check of the app failed: ${String(error)}`),
      );
    });
  }
  void collectStartGarbage();
  // One worker is enough: all compile the same files.
  if (slot === 0) link.afterStart(keepCompiled);
  return { role: 'worker', identity };
}

/** Makes Nest log less while the app starts. Does nothing if this package finds no copy of Nest. */
async function quietNest(): Promise<(() => void) | undefined> {
  try {
    const { Logger } = await import('@nestjs/common');
    return quietStart(Logger as never);
  } catch {
    return undefined; // the app's own import of Nest will report the error
  }
}

/**
 * The slot of the only worker that warns, because all workers would log the same warnings. Two or
 * more workers always have a slot 1, even after scaling.
 */
const WARNING_SLOT = 1;

/** Warns if the app does not work correctly in several workers. */
export async function warnOfFindings(
  app: object,
  link: Pick<ProcessLink, 'identity' | 'warn'>,
  { shown, ignore }: ResolvedClusterOptions['warnings'],
): Promise<void> {
  if (!shown || link.identity.slot !== WARNING_SLOT) return;
  const { startWarnings } = await import('../../observe/findings.js');
  for (const line of startWarnings(app, ignore)) link.warn(line);
}
