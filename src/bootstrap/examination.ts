import type { ResolvedClusterOptions } from '../contract/options/index.js';
import type { OwnAssignment } from '../contract/ipc/assignment.js';
import type { Examiner } from '../observe/findings/finding.js';
import type { WorkerApp } from '../worker/life/worker-app.interface.js';
import type { WorkerLink } from '../worker/link/worker-link.js';

/** Looks at the app of a worker. */
interface Examination {
  /** @returns the app. */
  created<A extends WorkerApp>(app: A): A;
  /** The app is up, or has failed to come up. */
  cameUp(): void;
}

/**
 * The slot of the worker that warns, unless there is only one worker. Several workers always have a
 * slot 1, also after a scaling, and all of them would say the same.
 */
const WARNING_SLOT = 1;

/** Has the app looked at: all of it for a doctor, the plain things in one worker of a cluster. */
export async function examination(
  link: WorkerLink,
  options: ResolvedClusterOptions,
  { identity, examination: asked, workers: assigned }: OwnAssignment,
): Promise<Examination> {
  const { doctor, workers } = options;
  if (asked !== undefined) {
    link.configure({ ...options, doctor: { ...doctor, warnings: true } }); // a doctor shows them anyway
    const { examiner, ...settings } = asked;
    const { startExamination } = (await import(/* webpackIgnore: true */ examiner)) as Examiner;
    const examine = startExamination();
    void link.snapshot(); // any message tells the doctor whose program this is
    return afterwards(link, async (app) => {
      try {
        await link.threads?.verify(); // a primary would ask
      } catch (error) {
        return link.reportBootFailure(error);
      }
      const main = process.argv[1]!;
      const situation = { ...settings, main, workers: Math.max(workers, 1) };
      const findings = examine(app, situation);
      link.reportExamination({ workers: situation.workers, findings, ignored: doctor.ignore });
    });
  }
  const { slot } = identity;
  if (!doctor.warnings || (slot !== WARNING_SLOT && assigned > 1)) return NOBODY;
  return afterwards(link, async (app) => {
    const { startWarnings } = await import('../observe/findings/start-warnings.js');
    const known = Math.max(assigned, slot + 1);
    for (const line of startWarnings(app, doctor.ignore, known)) link.warn(line);
  });
}

const NOBODY: Examination = { created: (app) => app, cameUp: () => {} };

/** Looks once the app is up, and when its worker has done what it does first. */
function afterwards(link: WorkerLink, look: (app: object) => Promise<void>): Examination {
  let created: object | undefined;
  return {
    created: (app) => {
      created = app;
      return app;
    },
    cameUp: () => {
      const app = created;
      if (app === undefined || link.state !== 'ready') return;
      setImmediate(() => {
        look(app).catch((error: unknown) =>
          link.warn(`could not look at the app: ${String(error)}`),
        );
      });
    },
  };
}
