import { mkdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  Program as AnyProgram,
  type ProgramStart,
} from '../../../../src/supervisor/processes/release.js';
import { temporaryDirectory } from '../../../support/temporary-directory.js';

/** A program that keeps what it warns of. */
class Program extends AnyProgram {
  readonly warnings: string[];

  constructor(start: ProgramStart) {
    const warnings: string[] = [];
    super(start, (message) => void warnings.push(message));
    this.warnings = warnings;
  }
}

/** Two releases and a symlink `current` to the first, as a deploy tool leaves them. */
function deployment() {
  // macOS has its temporary directory behind a symlink itself.
  const root = realpathSync(temporaryDirectory());
  for (const name of ['rel1', 'rel2']) {
    mkdirSync(join(root, name, 'dist'), { recursive: true });
    writeFileSync(join(root, name, 'dist', 'main.js'), '');
  }
  const current = join(root, 'current');
  const point = (name: string) => {
    rmSync(current, { force: true });
    symlinkSync(join(root, name), current);
  };
  point('rel1');
  return { root, current, point };
}

const of = (root: string, name: string) => ({
  cwd: join(root, name),
  script: join(root, name, 'dist', 'main.js'),
});

/** The error for a missing program: `resolve()` throws it at a start, `find()` returns it. */
function missing(program: Program): string {
  const found = program.find() as Error;
  expect(() => program.resolve()).toThrow(found);
  return found.message;
}

describe('a program', () => {
  it('that was started in a symlinked directory follows the symlink with each reload', () => {
    const { root, current, point } = deployment();
    // `cd current && node dist/main.js`: the kernel and Node see the real path, the shell the link.
    const program = new Program({
      script: join(root, 'rel1/dist/main.js'),
      cwd: join(root, 'rel1'),
      pwd: current,
    });
    expect(program.resolve()).toEqual(of(root, 'rel1'));
    point('rel2');
    expect(program.resolve()).toEqual(of(root, 'rel2'));
    point('rel1');
    expect(program.resolve()).toEqual(of(root, 'rel1'));
  });

  it('whose script was named through a symlink follows it; the directory stays', () => {
    const { root, current, point } = deployment();
    const program = new Program({
      script: join(current, 'dist/main.js'),
      cwd: root,
      pwd: root,
    });
    point('rel2');
    expect(program.resolve()).toEqual({ ...of(root, 'rel2'), cwd: root });
  });

  it('whose script is itself a symlink follows that', () => {
    const { root } = deployment();
    const script = join(root, 'app.js');
    symlinkSync(join(root, 'rel1/dist/main.js'), script);
    const program = new Program({ script, cwd: root, pwd: root });
    expect(program.resolve().script).toBe(join(root, 'rel1/dist/main.js'));
    rmSync(script);
    symlinkSync(join(root, 'rel2/dist/main.js'), script);
    expect(program.resolve().script).toBe(join(root, 'rel2/dist/main.js'));
  });

  it('whose script lies outside its working directory finds both', () => {
    const { root } = deployment();
    const script = join(root, 'rel2/dist/main.js');
    const program = new Program({ script, cwd: join(root, 'rel1'), pwd: undefined });
    expect(program.resolve()).toEqual({ script, cwd: join(root, 'rel1') });
  });

  it.each([
    ['is not set', () => undefined],
    ['is relative', () => 'current'],
    ['is empty', () => ''],
    [
      'leads elsewhere: it was inherited from another process',
      (root: string) => join(root, 'rel2'),
    ],
    ['leads nowhere', (root: string) => join(root, 'gone')],
  ])('takes the word of the kernel where PWD %s', (_, pwd) => {
    const { root, point } = deployment();
    const start = { script: join(root, 'rel1/dist/main.js'), cwd: join(root, 'rel1') };
    const program = new Program({ ...start, pwd: pwd(root) });
    expect(program.resolve()).toEqual(start);
    point('rel2');
    expect(program.resolve()).toEqual(start);
  });

  it('that was started without the extension of its script is left to Node to find', () => {
    const { root, current, point } = deployment();
    const program = new Program({
      script: join(root, 'rel1/dist/main'),
      cwd: join(root, 'rel1'),
      pwd: current,
    });
    point('rel2');
    expect(program.resolve().script).toBe(join(root, 'rel2/dist/main'));
  });
});

describe('a program that was started in the real path of its release, without PWD', () => {
  /** Starts as systemd does with `WorkingDirectory=…/current`. `named` gives the script's path. */
  function startedBySystemd(
    named: (names: { root: string; current: string }) => string,
    inside = '',
  ) {
    const { root, current, point } = deployment();
    for (const name of ['rel1', 'rel2']) mkdirSync(join(root, name, 'config'));
    symlinkSync(join(root, 'rel1/dist/main.js'), join(root, 'app.js'));
    const program = new Program({
      script: named({ root, current }),
      cwd: join(root, 'rel1', inside),
      pwd: undefined,
    });
    return {
      root,
      current,
      program,
      first: { ...program.resolve(), generation: 0 },
      deploy: () => {
        point('rel2');
        rmSync(join(root, 'app.js'));
        symlinkSync(join(root, 'rel2/dist/main.js'), join(root, 'app.js'));
      },
      cleanUp: () => rmSync(join(root, 'rel1'), { recursive: true }),
    };
  }

  it.each(['', 'dist', 'config'])(
    'follows the symlink by which its script was named, also to /%s',
    (inside) => {
      const { root, current, program, first, deploy, cleanUp } = startedBySystemd(
        (names) => join(names.current, 'dist/main.js'),
        inside,
      );
      expect(first).toMatchObject({ ...of(root, 'rel1'), cwd: join(root, 'rel1', inside) });
      expect(program.warnings).toEqual([]);
      deploy();
      const cwd = join(root, 'rel2', inside);
      expect(program.resolve()).toEqual({ ...of(root, 'rel2'), cwd });
      cleanUp();
      expect(program.resolve()).toEqual({ ...of(root, 'rel2'), cwd });
      expect(program.revive(first)).toEqual({ ...of(root, 'rel2'), cwd, generation: 0 });
      expect(program.warnings).toEqual([
        `workers run in ${cwd}: ${join(current, inside)} leads there, and so was the script named`,
      ]);
    },
  );

  it('stays where it was started while the new release has no such directory', () => {
    const { root, program, deploy } = startedBySystemd(
      (names) => join(names.current, 'dist/main.js'),
      'config',
    );
    deploy();
    rmSync(join(root, 'rel2/config'), { recursive: true });
    expect(program.resolve()).toEqual({ ...of(root, 'rel2'), cwd: join(root, 'rel1/config') });
    expect(program.warnings).toEqual([]);
  });

  it('takes the same place as seen from its script, where that is itself a symlink', () => {
    const { root, program, first, deploy, cleanUp } = startedBySystemd((names) =>
      join(names.root, 'app.js'),
    );
    deploy();
    expect(program.resolve()).toEqual({ ...of(root, 'rel2'), cwd: join(root, 'rel1') });
    cleanUp();
    expect(program.revive(first)).toEqual({ ...of(root, 'rel2'), generation: 0 });
    expect(program.resolve()).toEqual(of(root, 'rel2'));
    expect(program.warnings).toEqual([
      `the working directory ${join(root, 'rel1')} is not there; workers run in ${join(root, 'rel2')}: the same place as seen from the script`,
    ]);
  });

  it('says once for each change where that is', () => {
    const { root, program, deploy, cleanUp } = startedBySystemd((names) =>
      join(names.root, 'app.js'),
    );
    deploy();
    cleanUp();
    for (let i = 0; i < 3; i += 1) program.resolve();
    expect(program.warnings).toHaveLength(1);
    mkdirSync(join(root, 'rel3/dist'), { recursive: true });
    writeFileSync(join(root, 'rel3/dist/main.js'), '');
    rmSync(join(root, 'app.js'));
    symlinkSync(join(root, 'rel3/dist/main.js'), join(root, 'app.js'));
    expect(program.resolve()).toEqual(of(root, 'rel3'));
    expect(program.warnings).toHaveLength(2);
  });

  it('takes the directory of its script at a reload, where nothing else tells', () => {
    const { root, program, first, cleanUp } = startedBySystemd((names) =>
      join(names.root, 'rel2/dist/main.js'),
    );
    cleanUp();
    // Only the working directory is gone, and it may come back: new workers keep the release.
    expect(program.revive(first)).toBe(first);
    expect(program.warnings).toEqual([]);
    const next = { ...program.resolve(), generation: 1 };
    expect(next).toMatchObject({ ...of(root, 'rel2'), cwd: join(root, 'rel2/dist') });
    expect(program.revive(next)).toBe(next);
    expect(program.warnings).toEqual([
      `the working directory ${join(root, 'rel1')} is not there; workers run in ${join(root, 'rel2/dist')}: the directory of the script`,
    ]);
  });

  it('is said to need another name, where nothing of it is left', () => {
    const { root, program, cleanUp } = startedBySystemd((names) =>
      join(names.root, 'rel1/dist/main.js'),
    );
    cleanUp();
    expect(missing(program)).toContain(
      `the working directory ${join(root, 'rel1')} is not there, nor is the script ${join(root, 'rel1/dist/main.js')}; start it by a name that outlives a deploy`,
    );
  });
});

describe('a program that is not there', () => {
  it('is said to be without its working directory, by the name that its user gave', () => {
    const { root, current } = deployment();
    const program = new Program({
      script: join(root, 'rel1/dist/main.js'),
      cwd: join(root, 'rel1'),
      pwd: current,
    });
    rmSync(current);
    expect(missing(program)).toContain(`the working directory ${current} is not there`);
  });

  it('is said to be without the directory of its script', () => {
    const { root, current, point } = deployment();
    const script = join(current, 'dist/main.js');
    const program = new Program({ script, cwd: root, pwd: root });
    mkdirSync(join(root, 'rel3'));
    point('rel3');
    expect(missing(program)).toContain(`the directory of the script ${script} is not there`);
  });
});

describe('a release that is to run again', () => {
  function started() {
    const { root, current, point } = deployment();
    const program = new Program({
      script: join(root, 'rel1/dist/main.js'),
      cwd: join(root, 'rel1'),
      pwd: current,
    });
    return { root, current, point, program, release: { ...program.resolve(), generation: 3 } };
  }

  it('is the same, although the deploy has moved on: that takes effect with a reload alone', () => {
    const { program, point, release } = started();
    point('rel2');
    expect(program.revive(release)).toBe(release);
  });

  it('is what the names lead to now where its directory has been cleaned away', () => {
    const { root, program, point, release } = started();
    point('rel2');
    rmSync(join(root, 'rel1'), { recursive: true });
    expect(program.revive(release)).toEqual({ ...of(root, 'rel2'), generation: 3 });
  });

  it('is that also where the directory of the script alone is gone', () => {
    const { root, program, point, release } = started();
    point('rel2');
    rmSync(join(root, 'rel1/dist'), { recursive: true });
    expect(program.revive(release)).toEqual({ ...of(root, 'rel2'), generation: 3 });
  });

  it('is that also where its working directory alone is gone', () => {
    const { root, current, point } = deployment();
    const script = join(root, 'rel2/dist/main.js');
    const program = new Program({ script, cwd: join(root, 'rel1'), pwd: current });
    const release = { ...program.resolve(), generation: 3 };
    point('rel2');
    rmSync(join(root, 'rel1'), { recursive: true });
    expect(program.revive(release)).toEqual({ ...of(root, 'rel2'), generation: 3 });
  });

  it('is the same where there is nothing to lead to: its worker fails and says so', () => {
    const { root, current, program, release } = started();
    rmSync(join(root, 'rel1'), { recursive: true });
    rmSync(current);
    expect(program.revive(release)).toBe(release);
  });
});

describe('a release to go back to', () => {
  /** The deploy has moved on since a program was started from two directories. */
  function before() {
    const { root, current, point } = deployment();
    const script = join(root, 'rel2/dist/main.js');
    const program = new Program({ script, cwd: join(root, 'rel1'), pwd: current });
    const release = program.resolve();
    point('rel2');
    return { root, program, release };
  }

  it('is what it was, although the deploy has moved on', () => {
    const { program, release } = before();
    expect(program.find(release)).toEqual(release);
  });

  it.each([
    ['the directory of its script', 'rel2/dist'],
    ['its working directory', 'rel1'],
  ])('is not there once %s was removed: nothing stands in for it', (_what, removed) => {
    const { root, program, release } = before();
    rmSync(join(root, removed), { recursive: true });
    expect(program.find(release)).toEqual(new Error(`${join(root, removed)} is not there`));
  });
});
