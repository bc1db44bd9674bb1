/** The cases of a suite, and how they ended. */
export class Verdict {
  #passed = 0;
  #failed = 0;
  #isRed = false;
  #expected;

  /** @param known why a case fails that is not a defect of this package, by the name of the case. */
  constructor(known = {}) {
    this.#expected = new Map(Object.entries(known));
  }

  /**
   * @param problem why the case failed; `undefined` if it passed.
   * @param reason why a failure is not a defect of this package.
   */
  add(name, problem, reason = this.#expected.get(name)) {
    this.#expected.delete(name);
    if (problem === undefined) this.#passed += 1;
    else this.#failed += 1;
    if (problem === undefined && reason === undefined) return;
    if (problem !== undefined && reason !== undefined) {
      return console.log(`known   ${name}: ${reason}`);
    }
    this.#isRed = true;
    const what = problem ?? 'it passes, and is listed as a known difference';
    console.log(`FAILED  ${name}: ${String(what).slice(0, 2_000)}`);
  }

  /** Adds the cases of a JSON report by Vitest. */
  addVitest({ testResults }) {
    for (const { name, message, assertionResults } of testResults) {
      if (assertionResults.length === 0) this.add(name, message || 'no test');
      for (const { fullName, status, failureMessages } of assertionResults) {
        const problem = failureMessages.join('\n') || status;
        this.add(fullName.trim(), status === 'passed' ? undefined : problem);
      }
    }
  }

  /** Adds the cases of a JSON report by Mocha. A hook that fails is a case too. */
  addMocha({ tests, failures }) {
    const titles = new Set(tests.map(({ fullTitle }) => fullTitle));
    const hooks = failures.filter(({ fullTitle }) => !titles.has(fullTitle));
    for (const { fullTitle, err } of [...tests, ...hooks]) this.add(fullTitle, err.message);
  }

  /** Ends a cluster, and adds whether it ends well and no worker has died but those that were killed. */
  async addEnd(cluster, killed = 0) {
    const died = cluster.events.filter(({ event }) => event === 'worker-died').length;
    this.add('no worker dies', died === killed ? undefined : cluster.output());
    const code = await cluster.stop();
    this.add('the cluster ends', code === 0 ? undefined : `it ended with ${code}`);
  }

  /** Prints the counts. The process exits with 1 if a case ended in an unexpected way. */
  end() {
    for (const name of this.#expected.keys()) {
      this.#isRed = true;
      console.log(`FAILED  ${name}: it is listed as a known difference, and was not run`);
    }
    const cases = this.#passed + this.#failed;
    if (this.#isRed || cases === 0) process.exitCode = 1;
    console.log(`cases ${cases}, passed ${this.#passed}, failed ${this.#failed}`);
  }
}
