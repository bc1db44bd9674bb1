import { spawnSync } from 'node:child_process';

/**
 * Whether `test/bench` differs from the branch `main`, or on `main` from the commit before. Without
 * git, or in a clone without history, the answer is yes.
 */
export function benchHasChanged(): boolean {
  const git = (...args: string[]) =>
    spawnSync('git', args, { cwd: import.meta.dirname, encoding: 'utf8' });
  const head = git('rev-parse', 'HEAD').stdout.trim();
  const base = git('merge-base', 'HEAD', 'main').stdout.trim();
  const since = base === '' || base === head ? 'HEAD~1' : base;
  return git('diff', '--quiet', since, '--', ':/test/bench').status !== 0;
}
