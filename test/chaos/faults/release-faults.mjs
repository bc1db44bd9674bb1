import { BROKEN } from '../releases.mjs';

/** Deploys, good and bad, and changes of scale. */
export const RELEASE_FAULTS = [
  {
    name: 'reload',
    parameters: () => ({}),
    /** The release before is deleted, as deploys do. */
    async inject(run) {
      const { generation } = await run.report();
      const before = run.releases.deploy('good');
      run.cluster.signal('SIGHUP');
      await run.until('the reload', (report) => report.generation > generation && report.settled);
      run.releases.remove(before);
    },
  },
  {
    name: 'broken',
    parameters: (random) => ({ source: random.of(BROKEN) }),
    inject: (run, { source }) => reloadInVain(run, source),
  },
  {
    name: 'scale',
    parameters: (random) => ({ by: random.of([1, -1]) }),
    async inject(run, { by }) {
      const { desired } = await run.report();
      const scale = (step) => run.cluster.signal(step > 0 ? 'SIGTTIN' : 'SIGTTOU');
      const reached = (workers) => (report) => report.desired === workers && report.settled;
      scale(by);
      run.undoLater(() => scale(-by));
      await run.until('the scaling', reached(desired + by));
      run.undoNow();
      await run.until('the scaling back', reached(desired));
    },
  },
];

/** A reload of a broken release costs nothing: the workers before stay. */
export async function reloadInVain(run, source) {
  const aborted = () => run.counter('nestjs_cluster_reloads_total{outcome="aborted"}');
  const before = await aborted();
  const workers = run.cluster.workerPids;
  const good = run.releases.deploy(source);
  run.cluster.signal('SIGHUP');
  await run.eventually('the reload is aborted', async () => (await aborted()) > before);
  run.releases.remove(run.releases.restore(good));
  run.expectNewcomersDead(workers);
  const gone = workers.filter((pid) => !run.cluster.workerPids.includes(pid));
  if (gone.length > 0) run.failed(`a broken release (${source}) cost the workers ${gone}`);
}
