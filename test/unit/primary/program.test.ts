import { mkdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Program } from '../../../src/primary/program.js';
import { temporaryDirectory } from '../../support/temporary-directory.js';

/**
 * Releases rel1 and rel2, a symlink `current` to the first, as a deploy tool leaves them, and a symlink
 * `app.js` to its script.
 */
function deployment() {
  // macOS has its temporary directory behind a symlink itself.
  const root = realpathSync(temporaryDirectory());
  const path = (relative: string) => join(root, relative);
  const point = (name: string) => {
    for (const link of ['current', 'app.js']) rmSync(path(link), { force: true });
    symlinkSync(path(name), path('current'));
    symlinkSync(path(`${name}/dist/main.js`), path('app.js'));
  };
  for (const name of ['rel1', 'rel2']) {
    for (const directory of ['dist', 'config'])
      mkdirSync(path(`${name}/${directory}`), { recursive: true });
    writeFileSync(path(`${name}/dist/main.js`), '');
  }
  point('rel1');
  const paths = (script: string, cwd: string) => ({ script: path(script), cwd: path(cwd) });
  return {
    path,
    point,
    paths,
    remove: (relative: string) => rmSync(path(relative), { recursive: true }),
    /** A program that was started by these paths in `root`. */
    start: (script: string, cwd: string, pwd?: string) =>
      new Program({ ...paths(script, cwd), pwd: pwd === undefined ? undefined : path(pwd) }),
  };
}

/** The error for a missing program: `resolve()` throws it at a start, `find()` returns it. */
function missing(program: Program): string {
  const found = program.find() as Error;
  expect(() => program.resolve()).toThrow(found);
  return found.message;
}

describe('a program', () => {
  it.each<[what: string, start: [string, string, string?], ...found: [string, string][]]>([
    [
      // `cd current && node dist/main.js`: the kernel and Node see the real path, the shell the link.
      'started in a symlinked directory follows the symlink',
      ['rel1/dist/main.js', 'rel1', 'current'],
      ['rel1/dist/main.js', 'rel1'],
      ['rel2/dist/main.js', 'rel2'],
    ],
    [
      'whose script was named through a symlink follows it; the directory stays',
      ['current/dist/main.js', '.', '.'],
      ['rel1/dist/main.js', '.'],
      ['rel2/dist/main.js', '.'],
    ],
    [
      'whose script is a symlink follows it',
      ['app.js', '.', '.'],
      ['rel1/dist/main.js', '.'],
      ['rel2/dist/main.js', '.'],
    ],
    [
      'whose script is outside its working directory finds both',
      ['rel2/dist/main.js', 'rel1'],
      ['rel2/dist/main.js', 'rel1'],
      ['rel2/dist/main.js', 'rel1'],
    ],
    [
      'started without the extension of its script leaves the extension to Node',
      ['rel1/dist/main', 'rel1', 'current'],
      ['rel1/dist/main', 'rel1'],
      ['rel2/dist/main', 'rel2'],
    ],
    // As systemd with `WorkingDirectory=…/current`: without PWD, in the real path.
    ...['', '/dist', '/config'].map(
      (inside): [string, [string, string], [string, string], [string, string]] => [
        `started by systemd in current${inside} follows the symlink in its script's path`,
        ['current/dist/main.js', `rel1${inside}`],
        ['rel1/dist/main.js', `rel1${inside}`],
        ['rel2/dist/main.js', `rel2${inside}`],
      ],
    ),
  ])('%s', (_, started, before, after) => {
    const { start, point, paths } = deployment();
    const program = start(...started);
    expect(program.resolve()).toEqual(paths(...before!));
    point('rel2');
    expect(program.resolve()).toEqual(paths(...after!));
  });

  it.each([
    ['relative', 'current'],
    ['empty', ''],
    ['of another directory: it was inherited', 'rel2'],
    ['of a missing directory', 'gone'],
  ])('ignores a PWD that is %s', (what, pwd) => {
    const { path, point, paths } = deployment();
    const real = paths('rel1/dist/main.js', 'rel1');
    const isAbsolute = what.startsWith('of');
    const program = new Program({ ...real, pwd: isAbsolute ? path(pwd) : pwd });
    point('rel2');
    expect(program.resolve()).toEqual(real);
  });

  it.each<[what: string, started: [string, string, string?], removed: string, message: string]>([
    [
      'the symlink',
      ['rel1/dist/main.js', 'rel1', 'current'],
      'current',
      'the working directory /current',
    ],
    [
      'its directory, in the new release',
      ['current/dist/main.js', 'rel1/config'],
      'rel2/config',
      'the working directory /current/config',
    ],
    [
      'its directory, without a symlink',
      ['rel2/dist/main.js', 'rel1'],
      'rel1',
      'the working directory /rel1',
    ],
    [
      'the directory of its script',
      ['current/dist/main.js', '.', '.'],
      'rel2/dist',
      'the directory of the script /current/dist/main.js',
    ],
  ])('is missing without %s', (_, started, removed, message) => {
    const { path, start, point, remove } = deployment();
    const program = start(...started);
    point('rel2');
    remove(removed);
    expect(missing(program)).toBe(message.replace(' /', ` ${path('.')}/`) + ' does not exist');
  });
});

describe('a worker of an earlier release', () => {
  function started(script = 'rel1/dist/main.js') {
    const deployed = deployment();
    const program = deployed.start(script, 'rel1', 'current');
    const old = { ...program.resolve(), generation: 3 };
    deployed.point('rel2');
    return { ...deployed, program, old };
  }

  it('is restarted in its release, although the symlink has moved on', () => {
    const { program, old } = started();
    expect(program.revive(old)).toBe(old);
    expect(program.find(old)).toBe(old);
  });

  it.each([
    ['its release', 'rel1/dist/main.js', 'rel1', 'rel1/dist'],
    ['the directory of its script', 'rel1/dist/main.js', 'rel1/dist', 'rel1/dist'],
    ['its working directory', 'rel2/dist/main.js', 'rel1', 'rel1'],
  ])(
    'gets the current release if %s was removed; a reload cannot go back',
    (_, script, removed, named) => {
      const { program, path, paths, remove, old } = started(script);
      remove(removed);
      expect(program.revive(old)).toEqual({ ...paths('rel2/dist/main.js', 'rel2'), generation: 3 });
      expect(program.find(old)).toEqual(new Error(`${path(named)} does not exist`));
    },
  );

  it('keeps its release if there is no other: it fails to start and reports why', () => {
    const { program, remove, old } = started();
    remove('rel1');
    remove('current');
    expect(program.revive(old)).toBe(old);
  });
});
