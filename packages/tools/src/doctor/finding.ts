import type { AppView } from './app-view.js';

/** Something in an app that does not fit several workers. */
export interface Finding {
  readonly name: string;
  /** `note`: nothing goes wrong, but something is not needed. */
  readonly level: 'problem' | 'note';
  /** The class and its module, or the file. */
  readonly where: string;
  readonly problem: string;
  readonly remedy: string;
}

/** Settings of the command for the examined process. */
export interface Settings {
  /** Maximum number of connections of the database; `undefined` = the default of such a database. */
  readonly maxConnections?: number | undefined;
}

/** The variable that has the {@link Settings} as JSON. */
export const SETTINGS_VARIABLE = 'NESTJS_CLUSTER_DOCTOR';

interface Situation extends Settings {
  /** The number of workers with which the app would run. */
  readonly workers: number;
}

/** The report of the examined process. */
export interface Examined {
  readonly workers: number;
  /** The lines that the start of a cluster would log. */
  readonly warnings: readonly string[];
  readonly findings: readonly Finding[];
  /** The names in `warnings.ignore` of bootstrap(). */
  readonly ignored: readonly string[];
}

/** An observation from which a {@link Finding} is made. */
export type Observation = Pick<Finding, 'where' | 'problem'>;

/** Looks for one kind of finding in an app. */
export interface Check extends Pick<Finding, 'name' | 'remedy'> {
  look(app: AppView, situation: Situation): readonly Observation[];
}

/** A check that throws finds nothing: the app may have an unexpected version of a library. */
export function findingsOf(
  checks: readonly Check[],
  app: AppView,
  situation: Situation,
): readonly Finding[] {
  return checks.flatMap(({ name, remedy, ...check }) => {
    try {
      const observations = check.look(app, situation);
      return observations.map((seen) => ({ name, level: 'problem' as const, remedy, ...seen }));
    } catch {
      return [];
    }
  });
}
