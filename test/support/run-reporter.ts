import { appendFileSync } from 'node:fs';
import type { Reporter, SerializedError, TestCase, TestModule, Vitest } from 'vitest/node';

/** More than these in one run are a defect, not the noise of a machine. */
const TOLERATED = 3;

/**
 * Names what the figures of a run do not show: errors outside of any test, and each test that
 * passed at its second try only, with the error of the first. Too many of those fail the run.
 * With `TEST_REPORT`, the same lines are in the file of that name with `.txt`.
 */
export default class RunReporter implements Reporter {
  #vitest: Vitest | undefined;
  readonly #flaky: TestCase[] = [];

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onTestCaseResult(test: TestCase): void {
    if (test.diagnostic()?.flaky) this.#flaky.push(test);
  }

  onTestRunEnd(_modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const indented = (text: string | undefined) => text?.slice(0, 500).replaceAll('\n', '\n  ');
    const lines = this.#flaky.flatMap((test) => [
      `FLAKY ${test.module.relativeModuleId}: ${test.fullName}`,
      `  ${indented(test.result().errors?.[0]?.message)}`,
    ]);
    for (const { stack, message } of unhandled)
      lines.push(`UNHANDLED ${indented(stack ?? message)}`);
    if (this.#flaky.length > TOLERATED) {
      lines.push(`${this.#flaky.length} flaky tests: a run fails above ${TOLERATED}.`);
      process.exitCode = 1;
    }
    if (lines.length === 0) return;
    const text = lines.join('\n');
    this.#vitest!.logger.error(text);
    const report = process.env['TEST_REPORT'];
    if (report !== undefined) appendFileSync(`${report}.txt`, `${text}\n`);
  }
}
