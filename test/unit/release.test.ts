import { mkdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Program } from '../../src/primary/release.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

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

const of = (root: string, name: string, generation: number) => ({
  generation,
  cwd: join(root, name),
  script: join(root, name, 'dist', 'main.js'),
});

describe('a program', () => {
  it('that was started in a symlinked directory follows the symlink with each reload (R7)', () => {
    const { root, current, point } = deployment();
    // `cd current && node dist/main.js`: the kernel and Node know the real path, the shell the symlink.
    const program = new Program({
      script: join(root, 'rel1/dist/main.js'),
      cwd: join(root, 'rel1'),
      pwd: current,
    });
    expect(program.resolve(0)).toEqual(of(root, 'rel1', 0));
    point('rel2');
    expect(program.resolve(1)).toEqual(of(root, 'rel2', 1));
    point('rel1');
    expect(program.resolve(2)).toEqual(of(root, 'rel1', 2));
  });

  it('whose script was named through a symlink follows it; the directory stays (R7)', () => {
    const { root, current, point } = deployment();
    const program = new Program({
      script: join(current, 'dist/main.js'),
      cwd: root,
      pwd: root,
    });
    point('rel2');
    expect(program.resolve(1)).toEqual({ ...of(root, 'rel2', 1), cwd: root });
  });

  it('whose script is itself a symlink follows that', () => {
    const { root } = deployment();
    const script = join(root, 'app.js');
    symlinkSync(join(root, 'rel1/dist/main.js'), script);
    const program = new Program({ script, cwd: root, pwd: root });
    expect(program.resolve(0).script).toBe(join(root, 'rel1/dist/main.js'));
    rmSync(script);
    symlinkSync(join(root, 'rel2/dist/main.js'), script);
    expect(program.resolve(1).script).toBe(join(root, 'rel2/dist/main.js'));
  });

  it('whose script lies outside its working directory finds both', () => {
    const { root } = deployment();
    const script = join(root, 'rel2/dist/main.js');
    const program = new Program({ script, cwd: join(root, 'rel1'), pwd: undefined });
    expect(program.resolve(0)).toEqual({ generation: 0, script, cwd: join(root, 'rel1') });
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
    expect(program.resolve(0)).toEqual({ ...start, generation: 0 });
    point('rel2');
    expect(program.resolve(1)).toEqual({ ...start, generation: 1 });
  });

  it('that was started without the extension of its script is left to Node to find', () => {
    const { root, current, point } = deployment();
    const program = new Program({
      script: join(root, 'rel1/dist/main'),
      cwd: join(root, 'rel1'),
      pwd: current,
    });
    point('rel2');
    expect(program.resolve(1).script).toBe(join(root, 'rel2/dist/main'));
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
    expect(() => program.resolve(1)).toThrow(`the working directory ${current} is not there`);
  });

  it('is said to be without the directory of its script', () => {
    const { root, current, point } = deployment();
    const script = join(current, 'dist/main.js');
    const program = new Program({ script, cwd: root, pwd: root });
    mkdirSync(join(root, 'rel3'));
    point('rel3');
    expect(() => program.resolve(1)).toThrow(`the directory of the script ${script} is not there`);
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
    return { root, current, point, program, release: program.resolve(3) };
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
    expect(program.revive(release)).toEqual(of(root, 'rel2', 3));
  });

  it('is that also where the directory of the script alone is gone', () => {
    const { root, program, point, release } = started();
    point('rel2');
    rmSync(join(root, 'rel1/dist'), { recursive: true });
    expect(program.revive(release)).toEqual(of(root, 'rel2', 3));
  });

  it('is that also where its working directory alone is gone', () => {
    const { root, current, point } = deployment();
    const script = join(root, 'rel2/dist/main.js');
    const program = new Program({ script, cwd: join(root, 'rel1'), pwd: current });
    const release = program.resolve(3);
    point('rel2');
    rmSync(join(root, 'rel1'), { recursive: true });
    expect(program.revive(release)).toEqual(of(root, 'rel2', 3));
  });

  it('is the same where there is nothing to lead to: its worker fails and says so', () => {
    const { root, current, program, release } = started();
    rmSync(join(root, 'rel1'), { recursive: true });
    rmSync(current);
    expect(program.revive(release)).toBe(release);
  });
});
