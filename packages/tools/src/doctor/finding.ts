import type { FindingName } from '../../contract/options/index.js';
import type { AppView } from './app-view.js';

/** Something in an app that does not fit several workers. */
export interface Finding {
  readonly name: FindingName;
  /** `note`: nothing goes wrong, but something is not needed or has no effect. */
  readonly level: 'problem' | 'note';
  /** The class and its module, or the file. */
  readonly where: string;
  /** What happens with several workers. */
  readonly problem: string;
  /** The remedy, on one line. */
  readonly remedy: string;
}

/** The values from which the numbers of a finding are computed. */
export interface Situation {
  /** The number of workers with which the app is to run. */
  readonly workers: number;
  /** The file that calls `bootstrap()`. */
  readonly main: string;
  /** Maximum number of connections of the database; `undefined` = the default of such a database. */
  readonly maxConnections?: number | undefined;
  /** How long the proxy in front keeps an idle connection open; `undefined` = not known. */
  readonly proxyKeepAliveMs?: number | undefined;
}

/** An observation from which a {@link Finding} is made. */
export type Observation = Pick<Finding, 'where' | 'problem'> & Partial<Pick<Finding, 'remedy'>>;

/** Looks for one kind of finding in an app. */
export interface Check extends Pick<Finding, 'name' | 'remedy'> {
  /** Default: `problem`. */
  readonly level?: Finding['level'];
  look(app: AppView, situation: Situation): readonly Observation[];
}

/** The findings of these checks. A check that throws finds nothing: the app may have an unexpected version of a library. */
export function findingsOf(
  checks: readonly Check[],
  app: AppView,
  situation: Situation,
): readonly Finding[] {
  return checks.flatMap(({ name, level = 'problem', remedy, ...check }) => {
    try {
      return check
        .look(app, situation)
        .map((observation) => ({ name, level, remedy, ...observation }));
    } catch {
      return [];
    }
  });
}

/** The module that a worker loads when `nestjs-cluster doctor` examines it. */
export interface Examiner {
  /**
   * Begins to observe the process. Called before the app is created.
   *
   * @returns a function that examines the app once it is up.
   */
  readonly startExamination: () => (app: object, situation: Situation) => readonly Finding[];
}

/** Maximum number of names in a line. Further names are only counted. */
const MAX_NAMED = 4;

/** Lists the first names, and the number of further names, for one line. */
export function listed(names: readonly string[]): string {
  const named = names.slice(0, MAX_NAMED).join(', ');
  const more = names.length - MAX_NAMED;
  return more > 0 ? `${named} and ${more} more` : named;
}
