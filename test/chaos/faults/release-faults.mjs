import { BROKEN } from '../releases.mjs';

/** Deploys, good and bad, and changes of scale. */
export const RELEASE_FAULTS = [
  {
    name: 'reload',
    parameters: () => ({}),
    inject: replaceRelease,
  },
  {
    name: 'removed',
    parameters: () => ({}),
    /** Nothing is left of the release that the primary was started from, and all is asked of it. */
    async inject(run) {
      await replaceRelease(run);
      const { status, body } = await run.cluster.control('/v1/status');
      const { pid } = JSON.parse(body);
      if (status !== 200 || pid !== run.cluster.pid) run.failed(`the control socket: ${body}`);
      await takesLock(run);
      const ended = () =>
        run.log.lines.filter(({ text }) =>
          text.startsWith('the thread of @nestjs-cluster/shared ended'),
        ).length;
      const known = ended();
      run.cluster.signal('SIGURG');
      await run.eventually('the hub has ended', () => ended() > known);
      await takesLock(run);
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

/** A reload. The release before is deleted, as deploys do. */
async function replaceRelease(run) {
  const { generation } = await run.report();
  const before = run.releases.deploy('good');
  run.cluster.signal('SIGHUP');
  await run.until('the reload', (report) => report.generation > generation && report.settled);
  run.releases.remove(before);
}

/** A hub that is started anew gives locks after some seconds. */
async function takesLock(run) {
  const { status, body } = await run.cluster.app('/shared/locked/removed');
  if (status !== 200) run.failed(`no lock: ${status} ${body}`);
}

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
