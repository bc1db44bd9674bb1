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

/** Runs the app in a worker. Exits the process when the agent has ended. */
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
    // Lets the event loop handle pending requests first.
    setImmediate(() => {
      warnOfFindings(app, link, options.warnings).catch((error: unknown) =>
        link.warn(`the app could not be checked for cluster problems: ${String(error)}`),
      );
    });
  }
  void collectStartGarbage();
  // One worker is enough, because all workers compile the same files.
  if (slot === 0) link.afterStart(keepCompiled);
  return { role: 'worker', identity };
}

async function quietNest(): Promise<(() => void) | undefined> {
  try {
    const { Logger } = await import('@nestjs/common');
    return quietStart(Logger as never);
  } catch {
    return undefined; // the app's own import of Nest reports the error
  }
}

/**
 * Only this slot's worker warns, because all workers would log the same warnings. Slot 1 exists if
 * there are at least two workers.
 */
const WARNING_SLOT = 1;

export async function warnOfFindings(
  app: object,
  link: Pick<ProcessLink, 'identity' | 'warn'>,
  { shown, ignore }: ResolvedClusterOptions['warnings'],
): Promise<void> {
  if (!shown || link.identity.slot !== WARNING_SLOT) return;
  const { startWarnings } = await import('../../observe/findings.js');
  for (const line of startWarnings(app, ignore)) link.warn(line);
}
