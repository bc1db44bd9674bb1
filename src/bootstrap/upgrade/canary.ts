import type { ClusterEventMap, EventListeners } from '../../contract/events/index.js';
import type { ResolvedClusterOptions } from '../../contract/options/index.js';
import type { Supervisor } from '../../supervisor/supervisor.js';

/**
 * Resolves once every worker is ready, has lived for `reload.canaryMs` and has passed its health
 * check, as the new workers of a reload have to.
 *
 * @throws Error if a worker fails by itself, or if the cluster stops.
 */
export async function passCanary(
  supervisor: Supervisor,
  events: EventListeners,
  { reload }: Pick<ResolvedClusterOptions, 'reload'>,
): Promise<void> {
  let fail!: (error: Error) => void;
  const failed = new Promise<never>((_, reject) => (fail = reject));
  const onExit = (exit: ClusterEventMap['worker-exit']): void => {
    // A kill from outside says nothing about the release.
    if (exit.failed && exit.cause !== 'killed') {
      fail(new Error(`worker=${exit.worker.slot}: ${exit.detail}`));
    }
  };
  const onStop = ({ reason }: ClusterEventMap['stopping']): void => fail(new Error(reason));
  const onFailed = ({ message }: ClusterEventMap['failed']): void => fail(new Error(message));
  events.on('worker-exit', onExit);
  events.on('stopping', onStop);
  events.on('failed', onFailed);
  try {
    await Promise.race([failed, liveAndCheck(supervisor, reload.canaryMs)]);
  } finally {
    events.off('worker-exit', onExit);
    events.off('stopping', onStop);
    events.off('failed', onFailed);
  }
}

/** How often the workers are looked at. */
const LOOK_MS = 50;

async function liveAndCheck(
  { snapshot, serving, succession }: Supervisor,
  canaryMs: number,
): Promise<void> {
  await serving;
  const isReady = (): boolean => {
    const { ready, desired } = snapshot();
    return ready >= desired;
  };
  for (let livedMs = 0; livedMs <= canaryMs; livedMs = isReady() ? livedMs + LOOK_MS : 0) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  const problem = await succession.check();
  if (problem !== undefined) throw new Error(problem);
}
