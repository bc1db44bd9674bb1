import type { FindingName } from '../../contract/options/index.js';
import type { AppView } from './app-view.js';

/** Something in an app that does not fit several workers. */
export interface Finding {
  readonly name: FindingName;
  /** `note`: nothing goes wrong, but it is not needed, or does nothing. */
  readonly level: 'problem' | 'note';
  /** The class and its module, or the file. */
  readonly where: string;
  /** What happens with several workers. */
  readonly problem: string;
  /** One line. */
  readonly remedy: string;
  /** Page of the documentation, from the root of the repository. */
  readonly docs: string;
}

/** The values from which the numbers of a finding are computed. */
export interface Situation {
  /** Workers that the app is to run with. */
  readonly workers: number;
  /** The file that calls `bootstrap()`. */
  readonly main: string;
  /** Connections that the database allows; `undefined` = what such a database allows by default. */
  readonly maxConnections?: number | undefined;
  /** How long the proxy in front keeps a connection that is idle; `undefined` = not known. */
  readonly proxyKeepAliveMs?: number | undefined;
}

/** An observation from which a {@link Finding} is made. */
export type Observation = Pick<Finding, 'where' | 'problem'> &
  Partial<Pick<Finding, 'remedy' | 'docs'>>;

/** Looks for one thing in an app. */
export interface Check extends Pick<Finding, 'name' | 'docs' | 'remedy'> {
  /** Default: `problem`. */
  readonly level?: Finding['level'];
  look(app: AppView, situation: Situation): readonly Observation[];
}

/** The findings of these checks. A check finds nothing if a library differs from what it expects, since that may be another version. */
export function findingsOf(
  checks: readonly Check[],
  app: AppView,
  situation: Situation,
): readonly Finding[] {
  return checks.flatMap(({ name, level = 'problem', docs, remedy, ...check }) => {
    try {
      return check
        .look(app, situation)
        .map((observation) => ({ name, level, docs, remedy, ...observation }));
    } catch {
      return [];
    }
  });
}

/** A doctor's module, which the worker loads that it examines. */
export interface Examiner {
  /**
   * Begins to watch, before the app is created.
   *
   * @returns a function that examines the app once it is up.
   */
  startExamination(): (app: object, situation: Situation) => readonly Finding[];
}

/** A class has this many of something before the rest is only counted. */
const MAX_NAMED = 4;

/** Names for one line: the first few, and how many more. */
export function listed(names: readonly string[]): string {
  const named = names.slice(0, MAX_NAMED).join(', ');
  const more = names.length - MAX_NAMED;
  return more > 0 ? `${named} and ${more} more` : named;
}
