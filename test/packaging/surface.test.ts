import { existsSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join } from 'node:path';
import { format } from 'prettier';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { npmEnvironment, runCommand } from '../support/run-command.js';
import { importsOf, packageNameOf } from './support/imports.js';
import { type ExportedName, exportsOf } from './support/exported-names.js';
import { packed, type Tarball } from './support/tarball.js';
import { ROOT, TemporaryProject } from './support/temporary-project.js';

let project: TemporaryProject;
let tarball: Tarball;
/** The package as npm unpacks it. */
let unpacked: string;

beforeAll(async () => {
  project = await TemporaryProject.create();
  tarball = packed();
  await project.install([tarball.path], { withoutPeers: true });
  unpacked = project.path('node_modules/nestjs-cluster');
});

afterAll(() => project.remove());

it('exports what test/packaging/surface.md lists, each name on purpose', async () => {
  // After a change: `npx vitest --config test/vitest.config.ts --project packaging surface --update`
  const page = await format(apiPage(), { parser: 'markdown' });
  await expect(page).toMatchFileSnapshot(join(ROOT, 'test/packaging/surface.md'));
});

it('is a command too, which needs nothing of Nest', async () => {
  // `--no`: never another package of that name.
  const { code, stdout } = await runCommand('npx', ['--no', '--', 'nestjs-cluster', '--help'], {
    cwd: project.directory,
    env: npmEnvironment(),
  });
  expect(code).toBe(0);
  expect(stdout).toMatch(/Usage: nestjs-cluster[^]*^ +ps\b[^]*^ +reload\b[^]*^ +cpu-profile\b/m);
});

it('says what each exported name is for', () => {
  const silent = entries().flatMap(({ names }) => names.filter(({ docs }) => docs === ''));
  expect(silent).toEqual([]);
});

describe.each([
  { what: 'declarations', extension: '.d.ts' },
  { what: 'JavaScript', extension: '.js' },
])('the $what', ({ extension }) => {
  it('imports its own files, what it depends on, and builtins by their node: name', () => {
    const { dependencies, peerDependencies } = JSON.parse(
      readFileSync(join(unpacked, 'package.json'), 'utf8'),
    ) as Record<'dependencies' | 'peerDependencies', object>;
    const declared = new Set([...Object.keys(dependencies), ...Object.keys(peerDependencies)]);
    const allowed = (file: string, specifier: string): boolean => {
      if (specifier.startsWith('.')) {
        const target = join(dirname(file), specifier).replace(/\.js$/, extension);
        return tarball.files.includes(target);
      }
      return specifier.startsWith('node:')
        ? isBuiltin(specifier)
        : declared.has(packageNameOf(specifier));
    };
    const imports = tarball.files
      .filter((file) => file.endsWith(extension))
      .flatMap((file) => importsOf(join(unpacked, file)).map((specifier) => ({ file, specifier })));

    expect(imports.length).toBeGreaterThan(50);
    expect(imports.filter(({ file, specifier }) => !allowed(file, specifier))).toEqual([]);
  });
});

describe('the dependencies', () => {
  it('are all used', () => {
    const { dependencies } = JSON.parse(
      readFileSync(join(unpacked, 'package.json'), 'utf8'),
    ) as Record<'dependencies', object>;
    const used = new Set(
      tarball.files
        .filter((file) => file.endsWith('.js'))
        .flatMap((file) => importsOf(join(unpacked, file)))
        .map(packageNameOf),
    );

    expect(Object.keys(dependencies).filter((name) => !used.has(name))).toEqual([]);
  });

  it('run no script where they are installed', () => {
    const lock = project.path('node_modules/.package-lock.json');
    const { packages } = JSON.parse(readFileSync(lock, 'utf8')) as {
      packages: Record<string, { hasInstallScript?: boolean }>;
    };

    expect(existsSync(project.path('node_modules/valibot'))).toBe(true);
    expect(Object.keys(packages).filter((path) => packages[path]?.hasInstallScript)).toEqual([]);
  });
});

interface Entry {
  readonly specifier: string;
  readonly names: readonly ExportedName[];
}

function entries(): readonly Entry[] {
  const { exports } = JSON.parse(readFileSync(join(unpacked, 'package.json'), 'utf8')) as {
    exports: Record<string, string | { default: { types: string } }>;
  };
  return Object.entries(exports).flatMap(([entry, target]) =>
    typeof target === 'string'
      ? []
      : {
          specifier: entry.replace('.', 'nestjs-cluster'),
          names: exportsOf(join(unpacked, target.default.types)),
        },
  );
}

function apiPage(): string {
  const all = entries();
  const lean = all.find(({ specifier }) => specifier === 'nestjs-cluster/bootstrap')!;
  const leanNames = new Set(lean.names.map(({ name }) => name));
  const sections = all.map(({ specifier, names }) => {
    const isMain = specifier === 'nestjs-cluster';
    const rows = names
      .filter(({ name }) => !isMain || !leanNames.has(name))
      .map(({ name, kind, docs, calls }) => {
        const [first] = docs.replaceAll(/\s+/g, ' ').split(/(?<=\.) (?=[^a-z])/);
        const called = calls.map((call) => `\`${call}\``).join(', ');
        return `| \`${name}\` | ${kind} | ${first} | ${called} |`;
      });
    return [
      `## ${specifier}`,
      ...(isMain
        ? ['It exports all of [nestjs-cluster/bootstrap](#nestjs-clusterbootstrap), and:']
        : []),
      ['| name | kind | what it is | calls |', '| --- | --- | --- | --- |', ...rows].join('\n'),
    ].join('\n\n');
  });
  return [
    '# API',
    'After this page you know what each entry of the package exports. A test makes it of the type declarations, whose comments say more: your editor shows them.',
    ...sections,
  ].join('\n\n');
}
