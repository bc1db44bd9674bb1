import { type FindingName, silencedBy } from '../../contract/options/log.js';
import { type AppView, viewOf } from './app-view.js';
import { type Check, CHECKS, type Finding } from './checks.js';

/** Maximum number of places in a line. Further places are only counted. */
const MAX_PLACES = 4;

/** A check that throws finds nothing: the app may have an unexpected version of a library. */
export function findingsOf(app: AppView, checks: readonly Check[] = CHECKS): Finding[] {
  return checks.flatMap(({ find, ...finding }) => {
    try {
      const places = [...new Set(find(app))];
      const more = places.length > MAX_PLACES ? ` and ${places.length - MAX_PLACES} more` : '';
      const where = places.slice(0, MAX_PLACES).join(', ') + more;
      return places.length === 0 ? [] : [{ ...finding, where }];
    } catch {
      return [];
    }
  });
}

/** A line for each finding. All workers of an app have the same findings. */
export function startWarnings(app: object, ignore: readonly FindingName[]): string[] {
  return findingsOf(viewOf(app))
    .filter(({ name }) => !ignore.includes(name))
    .map(
      ({ name, where, problem, remedy }) => `${problem}: ${where}; ${remedy}; ${silencedBy(name)}`,
    );
}
