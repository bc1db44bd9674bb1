import { mkdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Program } from '../../../src/primary/release.js';
import { temporaryDirectory } from '../../support/temporary-directory.js';

/**
 * Releases rel1 and rel2, a symlink `current` to the first, as a deploy tool leaves them, and a symlink
 * `app.js` to its script.
 */
function deployment() {
  // macOS has its temporary directory behind a symlink itself.
  const root = realpathSync(temporaryDirectory());
  const current = join(root, 'current');
  const add = (name: string) => {
    mkdirSync(join(root, name, 'dist'), { recursive: true });
    writeFileSync(join(root, name, 'dist', 'main.js'), '');
  };
  const point = (name: string) => {
    for (const path of [current, join(root, 'app.js')]) rmSync(path, { force: true });
    symlinkSync(join(root, name), current);
    symlinkSync(join(root, name, 'dist/main.js'), join(root, 'app.js'));
  };
  for (const name of ['rel1', 'rel2']) add(name);
  point('rel1');
  return {
    root,
    current,
    add,
    point,
    remove: (path: string) => rmSync(join(root, path), { recursive: true }),
    /** A program that was started by these paths in `root`. */
    start: (script: string, cwd: string, pwd?: string) =>
      new Program({
        script: join(root, script),
        cwd: join(root, cwd),
        pwd: pwd === undefined ? undefined : join(root, pwd),
      }),
    /** The paths of a program in `root`. */
    paths: (script: string, cwd: string) => ({ script: join(root, script), cwd: join(root, cwd) }),
    release: (name: string) => ({
      cwd: join(root, name),
      script: join(root, name, 'dist', 'main.js'),
    }),
  };
}

/** The error for a missing program: `resolve()` throws it at a start, `find()` returns it. */
function missing(program: Program): string {
  const found = program.find() as Error;
  expect(() => program.resolve()).toThrow(found);
  return found.message;
}

describe('a program', () => {
  it.each<[what: string, start: [string, string, string?], ...before: [string, string][]]>([
    [
      // `cd current && node dist/main.js`: the kernel and Node see the real path, the shell the link.
      'that was started in a symlinked directory follows the symlink',
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
      'whose script is itself a symlink follows that',
      ['app.js', '.', '.'],
      ['rel1/dist/main.js', '.'],
      ['rel2/dist/main.js', '.'],
    ],
    [
      'whose script lies outside its working directory finds both',
      ['rel2/dist/main.js', 'rel1'],
      ['rel2/dist/main.js', 'rel1'],
      ['rel2/dist/main.js', 'rel1'],
    ],
    [
      'that was started without the extension of its script is left to Node to find',
      ['rel1/dist/main', 'rel1', 'current'],
      ['rel1/dist/main', 'rel1'],
      ['rel2/dist/main', 'rel2'],
    ],
  ])('%s', (_, started, before, after) => {
    const { start, point, paths } = deployment();
    const program = start(...started);
    expect(program.resolve()).toEqual(paths(...before!));
    point('rel2');
    expect(program.resolve()).toEqual(paths(...after!));
    point('rel1');
    expect(program.resolve()).toEqual(paths(...before!));
  });

  it.each([
    ['is not set', () => undefined],
    ['is relative', () => 'current'],
    ['is empty', () => ''],
    ['leads elsewhere: it was inherited from another process', (root: string) => `${root}/rel2`],
    ['leads nowhere', (root: string) => `${root}/gone`],
  ])('takes the word of the kernel where PWD %s', (_, pwd) => {
    const { root, point, release } = deployment();
    const program = new Program({ ...release('rel1'), pwd: pwd(root) });
    expect(program.resolve()).toEqual(release('rel1'));
    point('rel2');
    expect(program.resolve()).toEqual(release('rel1'));
  });
});

describe('a program that was started in the real path of its release, without PWD', () => {
  /** Starts as systemd does with `WorkingDirectory=…/current`. */
  function startedBySystemd(script: string, inside = '') {
    const deployed = deployment();
    for (const name of ['rel1', 'rel2']) mkdirSync(join(deployed.root, name, 'config'));
    const program = deployed.start(script, join('rel1', inside));
    return { ...deployed, program, first: { ...program.resolve(), generation: 0 } };
  }

  it.each(['', 'dist', 'config'])(
    'follows the symlink in the path of its script, also to /%s',
    (inside) => {
      const { root, program, first, point, remove, release } = startedBySystemd(
        'current/dist/main.js',
        inside,
      );
      expect(first).toMatchObject({ ...release('rel1'), cwd: join(root, 'rel1', inside) });
      point('rel2');
      const moved = { ...release('rel2'), cwd: join(root, 'rel2', inside) };
      expect(program.resolve()).toEqual(moved);
      remove('rel1');
      expect(program.revive(first)).toEqual({ ...moved, generation: 0 });
    },
  );

  it('is missing if the new release has no such directory', () => {
    const { current, program, point, remove } = startedBySystemd('current/dist/main.js', 'config');
    point('rel2');
    remove('rel2/config');
    expect(missing(program)).toBe(`the working directory ${join(current, 'config')} is not there`);
  });

  it('is missing if no symlink leads to its directory and that was removed: workers keep the path', () => {
    const { root, program, first, remove } = startedBySystemd('rel2/dist/main.js');
    remove('rel1');
    expect(missing(program)).toBe(`the working directory ${join(root, 'rel1')} is not there`);
    expect(program.revive(first)).toBe(first);
  });
});

describe('a program that is not there', () => {
  it('is said to be without its working directory, by the name that its user gave', () => {
    const { current, start } = deployment();
    const program = start('rel1/dist/main.js', 'rel1', 'current');
    rmSync(current);
    expect(missing(program)).toContain(`the working directory ${current} is not there`);
  });

  it('is said to be without the directory of its script', () => {
    const { root, current, start, point } = deployment();
    const program = start('current/dist/main.js', '.', '.');
    mkdirSync(join(root, 'rel3'));
    point('rel3');
    expect(missing(program)).toContain(
      `the directory of the script ${join(current, 'dist/main.js')} is not there`,
    );
  });
});

describe('a release that is to run again', () => {
  function started(script = 'rel1/dist/main.js') {
    const deployed = deployment();
    const program = deployed.start(script, 'rel1', 'current');
    return { ...deployed, program, old: { ...program.resolve(), generation: 3 } };
  }

  it('is the same, although the deploy has moved on: that takes effect with a reload alone', () => {
    const { program, point, old } = started();
    point('rel2');
    expect(program.revive(old)).toBe(old);
  });

  it.each([
    ['its directory has been cleaned away', 'rel1/dist/main.js', 'rel1'],
    ['the directory of its script alone is gone', 'rel1/dist/main.js', 'rel1/dist'],
    ['its working directory alone is gone', 'rel2/dist/main.js', 'rel1'],
  ])('is what the names lead to now where %s', (_, script, removed) => {
    const { program, point, remove, old, release } = started(script);
    point('rel2');
    remove(removed);
    expect(program.revive(old)).toEqual({ ...release('rel2'), generation: 3 });
  });

  it('is the same where there is nothing to lead to: its worker fails and says so', () => {
    const { current, program, remove, old } = started();
    remove('rel1');
    rmSync(current);
    expect(program.revive(old)).toBe(old);
  });
});

describe('a release to go back to', () => {
  /** The deploy has moved on since a program was started from two directories. */
  function before() {
    const deployed = deployment();
    const program = deployed.start('rel2/dist/main.js', 'rel1', 'current');
    const old = program.resolve();
    deployed.point('rel2');
    return { ...deployed, program, old };
  }

  it('is what it was, although the deploy has moved on', () => {
    const { program, old } = before();
    expect(program.find(old)).toEqual(old);
  });

  it.each([
    ['the directory of its script', 'rel2/dist'],
    ['its working directory', 'rel1'],
  ])('is not there once %s was removed: nothing stands in for it', (_what, removed) => {
    const { root, program, old, remove } = before();
    remove(removed);
    expect(program.find(old)).toEqual(new Error(`${join(root, removed)} is not there`));
  });
});
