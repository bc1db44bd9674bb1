import { spawnSync } from 'node:child_process';

/**
 * Whether `test/bench` differs from the branch `main`, or on `main` from the commit before. Without
 * git, or in a clone without history, the answer is yes.
 */
export function benchHasChanged(): boolean {
  const git = (...args: string[]) =>
    spawnSync('git', args, { cwd: import.meta.dirname, encoding: 'utf8' });
  const { stdout: head } = git('rev-parse', 'HEAD');
  const { stdout: base, status } = git('merge-base', 'HEAD', 'main');
  const since = status !== 0 || base === head ? 'HEAD~1' : base.trim();
  return git('diff', '--quiet', since, '--', ':/test/bench').status !== 0;
}
