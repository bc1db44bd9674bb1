import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { findNode } from '../../../../src/bootstrap/upgrade/new-primary.js';
import { temporaryDirectory } from '../../../support/temporary-directory.js';

const execPath = '/opt/node-20/bin/node';

/** A directory with an executable `node`, and one with a `node` that nobody can execute. */
function directories() {
  const root = temporaryDirectory();
  for (const [name, mode] of [
    ['good', 0o755],
    ['bad', 0o644],
  ] as const) {
    mkdirSync(join(root, name));
    writeFileSync(join(root, name, 'node'), '');
    chmodSync(join(root, name, 'node'), mode);
  }
  return { good: join(root, 'good'), bad: join(root, 'bad') };
}

it('finds Node in PATH again, if that is how it was started', () => {
  const { good, bad } = directories();
  const path = `relative:${bad}:${good}`;
  expect(findNode({ argv0: 'node', execPath, path })).toBe(join(good, 'node'));
});

it('takes the path by which it was started, which may be a symlink to another version by now', () => {
  const { good } = directories();
  const argv0 = join(good, 'node');
  expect(findNode({ argv0, execPath, path: '' })).toBe(argv0);
});

it.each(['/gone/node', 'node', './node', 'app'])(
  'takes the program that it runs if it was started as %s, which leads nowhere',
  (argv0) => {
    const { bad } = directories();
    writeFileSync(join(bad, 'app'), '', { mode: 0o755 });
    expect(findNode({ argv0, execPath, path: bad })).toBe(execPath);
  },
);
