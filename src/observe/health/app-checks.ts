import type { HealthIndicatorResult } from '@nestjs/terminus';
import { inTime } from '../../contract/process/in-time.js';
import type { AppIndicator } from './app-indicators.js';
import { knownStatus } from './limits.js';
import type { OnceLog } from './once-log.js';
import type { Terminus } from './terminus.js';

/** Keys of this package's own indicators. The app's indicators cannot use them. */
export const OUR_KEYS: readonly string[] = ['cluster', 'eventLoop', 'memory', 'offload'];

/** Maximum time for an indicator, in ms. A slower indicator is down. */
const TIMEOUT_MS = 1_000;

const STATUSES: readonly unknown[] = ['up', 'degraded', 'down'];

type Report = HealthIndicatorResult[string];

/**
 * Runs all of the app's own indicators at the same time. An indicator that throws, hangs or returns
 * an invalid report is down, without effect on other indicators. An error may name hosts, files and
 * passwords, so it only goes to the log.
 */
export class AppChecks {
  constructor(
    private readonly indicators: readonly AppIndicator[],
    /** If the installed terminus does not know the status `degraded`, a degraded indicator is up. */
    private readonly terminus: Pick<Terminus, 'knowsDegraded'>,
    private readonly log: Pick<OnceLog, 'error'>,
  ) {}

  /** One report of all indicators. A key that is taken gets a number: `memory2`. */
  async check(): Promise<HealthIndicatorResult> {
    const reports = await Promise.all(this.indicators.map((each) => this.#ask(each)));
    const all = new Map<string, Report | undefined>(OUR_KEYS.map((key) => [key, undefined]));
    for (const [key, report] of reports.flat()) {
      let free = key;
      for (let i = 2; all.has(free); i++) free = `${key}${i}`;
      all.set(free, report);
    }
    for (const key of OUR_KEYS) all.delete(key);
    return Object.fromEntries(all as Map<string, Report>);
  }

  /** The reports of one indicator by key. Never rejects. */
  async #ask({ name, check }: AppIndicator): Promise<[string, Report][]> {
    const down = (message: string): [string, Report][] => [[name, { status: 'down', message }]];
    const answered = this.#answerOf(check).catch((error: unknown) => {
      if (error instanceof NoReport) {
        this.log.error(`health indicator "${name}" ${error.message}`);
        return down('gave no valid result; see the log');
      }
      this.log.error(`health indicator "${name}" threw an error`, error);
      return down('threw an error; see the log');
    });
    return inTime(answered, TIMEOUT_MS, () => {
      const message = `gave no result within ${TIMEOUT_MS} ms`;
      this.log.error(`health indicator "${name}" ${message}`);
      return down(message);
    });
  }

  async #answerOf(check: () => unknown): Promise<[string, Report][]> {
    let result: unknown;
    try {
      result = await check();
    } catch (error) {
      // Indicators for terminus before 12 may throw this error to report that they are down.
      const { isHealthCheckError, causes } = (error ?? {}) as Partial<HealthCheckError>;
      if (isHealthCheckError !== true) throw error;
      result = causes;
    }
    if (!isObject(result)) throw new NoReport();
    // Converts the report now, so that a cycle, a bigint or a getter fails here and not when the
    // report is sent.
    const plain = JSON.parse(JSON.stringify(result)) as Record<string, unknown>;
    // An empty report is refused, because such a check could never fail.
    if (Object.keys(plain).length === 0) throw new NoReport();
    return Object.entries(plain).map(([key, report]) => {
      if (!isReport(report)) throw new NoReport();
      return [key, { ...report, status: knownStatus(this.terminus, report.status) }];
    });
  }
}

class NoReport extends Error {
  override readonly message =
    "gave no result of a health indicator: { key: { status: 'up', 'degraded' or 'down', … } }";
}

/** The error of terminus 11. */
interface HealthCheckError {
  readonly isHealthCheckError: boolean;
  readonly causes: unknown;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isReport(value: unknown): value is Report {
  return isObject(value) && STATUSES.includes((value as Partial<Report>).status);
}
