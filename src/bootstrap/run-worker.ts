import type { ResolvedClusterOptions } from '../options/index.js';
import { type Assignment, WorkerAgent } from '../worker/agent.js';
import { outliveReadersOfOutput } from './broken-pipe.js';
import type { CreateApp, WorkerRuntime } from './cluster-runtime.interface.js';
import { setCurrentLink } from './current-link.js';

/** Runs the app in a worker; ends the process when its agent has nothing left to do. */
export async function runWorker(
  createApp: CreateApp,
  options: ResolvedClusterOptions,
  assignment: Assignment,
): Promise<WorkerRuntime> {
  outliveReadersOfOutput();
  const { identity } = assignment;
  process.title = `worker=${identity.slot} gen=${identity.generation} nestjs-cluster`;
  const agent = new WorkerAgent(assignment, options);
  setCurrentLink(agent.link);
  void agent.ended.then((exitCode) => process.exit(exitCode));
  await agent.run(createApp);
  return { role: 'worker', identity };
}
