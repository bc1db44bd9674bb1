import type { ResolvedClusterOptions } from '../contract/options/index.js';
import type { OwnAssignment } from '../contract/ipc/assignment.js';
import type { Examiner } from '../observe/findings/finding.js';
import type { WorkerLink } from '../worker/link/worker-link.js';

type Examination = (app: object) => Promise<void>;

/**
 * The slot of the only worker that warns, because all workers would log the same warnings. Two or
 * more workers always have a slot 1, even after scaling. A single worker warns in any slot.
 */
const WARNING_SLOT = 1;

/**
 * Prepares the inspection. The `doctor` command gets all checks; in a cluster, one worker runs a few.
 *
 * @returns `undefined` in the other workers.
 */
export async function examination(
  link: WorkerLink,
  options: ResolvedClusterOptions,
  { identity, examination: asked, workers: assigned }: OwnAssignment,
): Promise<Examination | undefined> {
  const { warnings, workers } = options;
  if (asked !== undefined) {
    link.configure({ ...options, warnings: { ...warnings, shown: true } }); // `doctor` always shows warnings
    const { examiner, ...settings } = asked;
    const { startExamination } = (await import(/* webpackIgnore: true */ examiner)) as Examiner;
    const examine = startExamination();
    void link.snapshot(); // any message shows the `doctor` command that the program runs this package
    return async (app) => {
      try {
        await link.threads?.verify(); // in a cluster the primary requests this
      } catch (error) {
        return link.reportBootFailure(error);
      }
      const main = process.argv[1]!;
      const situation = { ...settings, main, workers: Math.max(workers, 1) };
      const findings = examine(app, situation);
      link.reportExamination({ workers: situation.workers, findings, ignored: warnings.ignore });
    };
  }
  const { slot } = identity;
  if (!warnings.shown || (slot !== WARNING_SLOT && assigned > 1)) return undefined;
  return async (app) => {
    const { startWarnings } = await import('../observe/findings/start-warnings.js');
    const known = Math.max(assigned, slot + 1);
    for (const line of startWarnings(app, warnings.ignore, known)) link.warn(line);
  };
}
