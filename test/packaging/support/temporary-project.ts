import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { NODE } from '../../support/cluster-process.js';
import {
  type CommandResult,
  npmEnvironment,
  plainEnvironment,
  runCommand,
} from '../../support/run-command.js';

/** The repository. */
export const ROOT = join(import.meta.dirname, '../../..');

export interface InstallOptions {
  /** npm installs peers by itself; `true` leaves them out. */
  readonly withoutPeers?: boolean;
  /** `false` leaves package.json as it is. */
  readonly save?: boolean;
}

/** A folder outside the repository, so that it sees only what is installed into it. */
export class TemporaryProject {
  private constructor(readonly directory: string) {}

  static async createEmpty(): Promise<TemporaryProject> {
    return new TemporaryProject(await mkdtemp(join(tmpdir(), 'nestjs-cluster-')));
  }

  static async create(): Promise<TemporaryProject> {
    const project = await TemporaryProject.createEmpty();
    await project.write({ 'package.json': JSON.stringify({ name: 'app', private: true }) });
    return project;
  }

  path(...segments: string[]): string {
    return join(this.directory, ...segments);
  }

  /** Writes files, by their path in the project. */
  async write(files: Readonly<Record<string, string>>): Promise<void> {
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(this.path(path)), { recursive: true });
      await writeFile(this.path(path), text);
    }
  }

  async install(
    packages: readonly string[],
    { withoutPeers = false, save = true }: InstallOptions = {},
  ): Promise<void> {
    const args = ['install', '--no-audit', '--no-fund', '--prefer-offline', ...packages];
    if (withoutPeers) args.push('--legacy-peer-deps');
    if (!save) args.push('--no-save');
    const { code, stderr } = await runCommand('npm', args, {
      cwd: this.directory,
      env: npmEnvironment(),
    });
    if (code !== 0) throw new Error(`npm install ended with ${code}\n${stderr}`);
  }

  /** Puts a tarball of npm where an install would put it, without its dependencies. */
  async unpack(tarball: string, name: string): Promise<void> {
    const folder = this.path('node_modules', name);
    await mkdir(folder, { recursive: true });
    const args = ['-xzf', tarball, '-C', folder, '--strip-components=1'];
    const { code, stderr } = await runCommand('tar', args, {
      cwd: this.directory,
      env: plainEnvironment(),
    });
    if (code !== 0) throw new Error(`tar ended with ${code}\n${stderr}`);
  }

  /** Gives it packages of the repository: each of the last of `workspaces` that has it. */
  async link(names: readonly string[], workspaces: readonly string[]): Promise<void> {
    for (const name of names) {
      const installed = workspaces
        .map((workspace) => join(ROOT, workspace, 'node_modules', name))
        .findLast((path) => existsSync(path));
      if (installed === undefined) throw new Error(`${name} is not installed`);
      await mkdir(dirname(this.path('node_modules', name)), { recursive: true });
      await symlink(installed, this.path('node_modules', name));
    }
  }

  /** Runs the Node under test. */
  node(...args: string[]): Promise<CommandResult> {
    return runCommand(NODE, args, { cwd: this.directory, env: plainEnvironment() });
  }

  /** Runs the TypeScript of the repository. */
  tsc(...args: string[]): Promise<CommandResult> {
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    return runCommand(process.execPath, [tsc, ...args], {
      cwd: this.directory,
      env: plainEnvironment(),
    });
  }

  async remove(): Promise<void> {
    await rm(this.directory, { recursive: true, force: true });
  }
}

/** Packages that npm installs with this one, by itself. */
export function dependencies(): string[] {
  const { dependencies = {} } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    dependencies?: object;
  };
  return Object.keys(dependencies);
}

/** `names` as npm takes them, in the versions that the lock file has for `workspace`. */
export function locked(names: readonly string[], workspace = ''): string[] {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version: string } | undefined>;
  };
  return names.map((name) => {
    const own = packages[join(workspace, 'node_modules', name)];
    const { version } = own ?? packages[`node_modules/${name}`] ?? {};
    if (version === undefined) throw new Error(`package-lock.json has no ${name}`);
    return `${name}@${version}`;
  });
}
