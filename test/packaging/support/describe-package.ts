import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { afterAll, describe, expect, it } from 'vitest';
import { packed } from './tarball.js';
import { dependencies, locked, ROOT, TemporaryProject } from './temporary-project.js';

interface Manifest {
  readonly version: string;
  readonly exports: Readonly<Record<string, unknown>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: object;
  readonly peerDependencies: Readonly<Record<string, string>>;
}

/** Folders in which packages are looked for. The packages of Nest 11 are in the fixture, all others at the root. */
const NEST_11 = ['', 'test/fixtures/nest-11'];

const read = (path: string): Manifest =>
  JSON.parse(readFileSync(join(ROOT, path, 'package.json'), 'utf8')) as Manifest;

/**
 * Declares the tests of the tarball of a package in `packages/`.
 *
 * @param others packages of ours that it needs besides `nestjs-cluster`.
 */
export function describePackage(directory: string, others: readonly string[] = []): void {
  const name = `@nestjs-cluster/${directory}`;
  const manifest = read(`packages/${directory}`);
  const own = ['nestjs-cluster', ...others, name];
  const peers = Object.keys(manifest.peerDependencies).filter((peer) => !own.includes(peer));
  const specifiers = Object.keys(manifest.exports)
    .filter((entry) => entry !== './package.json')
    .map((entry) => entry.replace('.', name));
  /** Loads each entry in both ways, and prints those that export something, or that give two copies. */
  const load = `
    const all = ${JSON.stringify(specifiers)}.map(async (specifier) => {
      const [imported, required] = [await import(specifier), require(specifier)];
      const names = Object.keys(imported);
      const different = names.filter((name) => imported[name] !== required[name]);
      return [specifier, names.length > 0, different];
    });
    Promise.all(all).then((rows) => console.log(JSON.stringify(rows)));
  `;

  describe(`the tarball of ${name}`, () => {
    const projects: TemporaryProject[] = [];
    const create = async (): Promise<TemporaryProject> => {
      const project = await TemporaryProject.create();
      projects.push(project);
      return project;
    };
    const expectLoaded = async (project: TemporaryProject): Promise<void> => {
      await project.write({ 'load.cjs': load });
      // Node 22.12 still warns of require() of an ES module.
      const { stdout, stderr } = await project.node(
        '--disable-warning=ExperimentalWarning',
        'load.cjs',
      );
      const rows = specifiers.map((specifier) => [specifier, true, []]);
      expect(JSON.parse(stdout || 'null'), stderr).toEqual(rows);
      for (const bin of Object.keys(manifest.bin ?? {})) {
        const { code, stdout: help } = await project.node(`node_modules/.bin/${bin}`, '--help');
        expect([code, help]).toEqual([0, expect.stringContaining('Usage:')]);
      }
    };

    afterAll(() => Promise.all(projects.map((project) => project.remove())));

    it('has the version of nestjs-cluster, and asks for just that', () => {
      const { version } = read('.');
      const asked = own.slice(0, -1).map((each) => manifest.peerDependencies[each]);

      expect(manifest.version).toBe(version);
      expect(asked).toEqual(asked.map(() => version));
    });

    it('holds dist/, its README and its package.json, and has no problem that publint knows', async () => {
      const tarball = packed(name);
      const isExpected = (path: string) =>
        path.startsWith('dist/') || ['LICENSE', 'README.md', 'package.json'].includes(path);
      const { messages, pkg } = await publint({
        pack: { tarball: new Uint8Array(readFileSync(tarball.path)).buffer },
        level: 'warning',
      });

      expect(tarball.files).toContain('README.md');
      expect(tarball.files.filter((path) => !isExpected(path))).toEqual([]);
      expect(messages.map((message) => formatMessage(message, pkg))).toEqual([]);
    });

    it('is installed by npm, and loads, with Nest 12', async () => {
      const project = await create();
      await project.install([...own.map((each) => packed(each).path), ...locked(peers)]);

      await expectLoaded(project);
    });

    it('loads with Nest 11', async () => {
      const project = await create();
      for (const each of own) await project.unpack(packed(each).path, each);
      const needed = new Set([
        ...dependencies(),
        ...others.flatMap((each) => {
          const { dependencies: of = {} } = read(each.replace('@nestjs-cluster', 'packages'));
          return Object.keys(of);
        }),
        ...Object.keys(manifest.dependencies ?? {}),
        '@nestjs/common',
        '@nestjs/core',
        'reflect-metadata',
        'rxjs',
        ...peers,
      ]);
      await project.link([...needed], NEST_11);
      for (const [bin, file] of Object.entries(manifest.bin ?? {})) {
        await project.write({ [`node_modules/.bin/${bin}`]: `import('../${name}/${file}');` });
      }

      await expectLoaded(project);
    });
  });
}
