import type { Reporter, TestCase, Vitest } from 'vitest/node';

/** More than these in one run are a defect, not the noise of a machine. */
const TOLERATED = 3;

/**
 * Names each test that passed at its second try only, with the error of the first; fails the run
 * where they are too many.
 */
export default class FlakyReporter implements Reporter {
  #vitest: Vitest | undefined;
  readonly #flaky: TestCase[] = [];

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onTestCaseResult(test: TestCase): void {
    if (test.diagnostic()?.flaky) this.#flaky.push(test);
  }

  onTestRunEnd(): void {
    const { logger } = this.#vitest!;
    for (const test of this.#flaky) {
      const [error] = test.result().errors ?? [];
      logger.log(`FLAKY ${test.module.relativeModuleId}: ${test.fullName}`);
      logger.log(`  ${error?.message.slice(0, 500).replaceAll('\n', '\n  ')}`);
    }
    if (this.#flaky.length <= TOLERATED) return;
    logger.error(`${this.#flaky.length} flaky tests: a run fails above ${TOLERATED}.`);
    process.exitCode = 1;
  }
}
