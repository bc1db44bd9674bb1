import type { AppView } from './app-view.js';
import type { Finding, Observation } from './finding.js';

/** Looks for one thing in an app; `S` is what it has to know besides. */
export interface Check<S = unknown> extends Pick<Finding, 'name' | 'level' | 'docs' | 'remedy'> {
  look(app: AppView, situation: S): readonly Observation[];
}

/** The findings of these checks. A check finds nothing if a library differs from what it expects, since that may be another version. */
export function findingsOf<S>(
  checks: readonly Check<S>[],
  app: AppView,
  situation: S,
): readonly Finding[] {
  return checks.flatMap(({ name, level, docs, remedy, ...check }) => {
    try {
      return check
        .look(app, situation)
        .map((observation) => ({ name, level, docs, remedy, ...observation }));
    } catch {
      return [];
    }
  });
}
