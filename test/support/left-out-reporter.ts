import type { Reporter, Vitest } from 'vitest/node';
import { PROJECTS } from '../projects.js';

/** Says at the end of `npm test` what it did not run, why, and the command that does. */
export default class LeftOutReporter implements Reporter {
  #vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onTestRunEnd(): void {
    const vitest = this.#vitest!;
    const ran = new Set(vitest.projects.map(({ name }) => name));
    const isNpmTest = PROJECTS.every(({ name, leftOutFor }) => ran.has(name) !== !!leftOutFor);
    if (!isNpmTest) return;
    vitest.logger.log(
      [
        'Left out of npm test:',
        ...PROJECTS.filter(({ leftOutFor }) => leftOutFor !== undefined).map(
          ({ name, holds, leftOutFor }) => `  test/${name}: ${holds}; ${leftOutFor}`,
        ),
        'npm run test:rest runs these, npm run test:all everything.\n',
      ].join('\n'),
    );
  }
}
