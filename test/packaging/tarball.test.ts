import { existsSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { plainEnvironment, runCommand } from '../support/run-command.js';
import { packed, type Tarball } from './support/tarball.js';
import { ROOT, TemporaryProject } from './support/temporary-project.js';

/** For test runners. Shared chunks have no declarations: the entries use the ES modules' ones. */
const COMMON_JS = 'dist/common-js/';

type Conditions = Readonly<Record<string, Readonly<Record<string, string>>>>;

interface Manifest {
  readonly type: string;
  readonly engines: object;
  readonly peerDependencies: object;
  readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional: boolean }>>;
  readonly dependencies: object;
  readonly exports: Readonly<Record<string, string | Conditions>>;
  readonly scripts: Readonly<Record<string, string>>;
}

let project: TemporaryProject;
let tarball: Tarball;
let manifest: Manifest;

beforeAll(async () => {
  project = await TemporaryProject.create();
  tarball = packed();
  manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as Manifest;
});

afterAll(() => project.remove());

describe('the tarball', () => {
  it('holds dist/ and its documents, and nothing else', () => {
    const built = readdirSync(join(ROOT, 'dist'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)));
    const documents = ['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json'];

    expect(tarball.files.filter((path) => !documents.includes(path))).toEqual(built.sort());
  });

  it.each(['LICENSE', 'README.md', 'package.json'])('brings %s along', (path) => {
    expect(tarball.files).toContain(path);
  });

  it('holds JavaScript and its declarations: no source, no test, no build cache', () => {
    const built = tarball.files.filter((path) => path.startsWith('dist/'));

    expect(built.filter((path) => !/\.(?:d\.c?ts|c?js)$/.test(path))).toEqual([]);
    expect(built.filter((path) => /\b(?:test|spec|fixtures?|bench)\b/.test(path))).toEqual([]);
    // Declarations are those that the entries lead to, which the types of a consumer show.
    const declarations = built.filter((path) => /\.d\.c?ts$/.test(path));
    expect(declarations.length).toBeLessThan(155);
  });

  it('is small', () => {
    const commonJs = tarball.bytesOf((path) => path.startsWith(COMMON_JS));

    expect(tarball.sizeBytes).toBeLessThan(350_000);
    expect(tarball.unpackedBytes - commonJs).toBeLessThan(2_150_000);
    expect(commonJs).toBeLessThan(330_000);
  });

  it('has CommonJS and its types for each entry, and what they share', () => {
    const files = tarball.files.filter((path) => path.startsWith(COMMON_JS));
    const entries = Object.values(manifest.exports).flatMap((entry) =>
      typeof entry === 'string' ? [] : Object.values(entry['require']!),
    );

    expect(files).toEqual(expect.arrayContaining(entries.map((path) => path.slice(2))));
    expect(files.filter((path) => !/\.(?:d\.cts|cjs)$/.test(path))).toEqual([]);
  });

  it('has no problem that publint knows', async () => {
    const packed = await readFile(tarball.path);
    const { messages, pkg } = await publint({
      pack: { tarball: new Uint8Array(packed).buffer },
      level: 'warning',
    });

    expect(messages.map((message) => formatMessage(message, pkg))).toEqual([]);
  });

  it('gives ESM types to everyone who imports it', async () => {
    // Its profile ignores node10, which knows no "exports", and the error that
    // require() of an ES module was before Node 20.19.
    const args = ['--profile', 'esm-only', '--no-definitely-typed', '--format', 'ascii'];
    const { code, stdout } = await runCommand(
      join(ROOT, 'node_modules/.bin/attw'),
      [tarball.path, ...args],
      { cwd: ROOT, env: plainEnvironment() },
    );

    expect(code, stdout).toBe(0);
    expect(stdout).toContain('"nestjs-cluster"');
    expect(stdout).toContain('"nestjs-cluster/bootstrap"');
  });
});

describe('package.json', () => {
  it('supports every Node that can require() an ES module', () => {
    expect(manifest.engines).toEqual({ node: '^20.19.0 || ^22.12.0 || >=24.0.0' });
    expect(manifest.type).toBe('module');
  });

  it('leaves what must be there once to the app', () => {
    expect(manifest.peerDependencies).toEqual({
      '@nestjs/common': '^11.0.0 || ^12.0.0',
      '@nestjs/core': '^11.0.0 || ^12.0.0',
      '@nestjs/schedule': '^6.0.0 || ^12.0.0',
      '@nestjs/terminus': '^11.0.0 || ^12.0.0',
      '@prometheus-io/client': '^0.16.0',
      'prom-client': '^15.1.0',
      'reflect-metadata': '^0.1.13 || ^0.2.0',
      rxjs: '^7.1.0',
    });
    // All others are needed only by health, metrics or `/schedule`.
    const { peerDependencies, peerDependenciesMeta } = manifest;
    const required = Object.keys(peerDependencies).filter(
      (name) => !peerDependenciesMeta[name]?.optional,
    );
    expect(required).toEqual(['@nestjs/common', '@nestjs/core', 'reflect-metadata', 'rxjs']);
    expect(Object.keys(manifest.dependencies)).toEqual([
      'commander',
      'negotiator',
      'piscina',
      'valibot',
    ]);
  });

  it('runs no script where it is installed', () => {
    const hooks = ['preinstall', 'install', 'postinstall', 'prepublish', 'prepare'];

    expect(Object.keys(manifest.scripts).filter((name) => hooks.includes(name))).toEqual([]);
    // npm runs node-gyp by itself where it finds this file.
    expect(existsSync(join(ROOT, 'binding.gyp'))).toBe(false);
  });

  it('exports its entry points and itself', () => {
    expect(manifest.exports).toEqual({
      '.': entry('index', 'index'),
      './bootstrap': entry('bootstrap/index', 'bootstrap'),
      './schedule': entry('schedule/index', 'schedule'),
      './testing': entry('testing/index', 'testing'),
      './extension': entry('extension/index', 'extension'),
      './package.json': './package.json',
    });
    // The first condition that matches counts: Node knows "module-sync", bundlers "module", and
    // Jest "require". TypeScript takes the "types" within.
    const { './package.json': _itself, ...entries } = manifest.exports;
    for (const conditions of Object.values(entries)) {
      expect(Object.keys(conditions)).toEqual(['module-sync', 'module', 'require', 'default']);
    }
    expect(Object.keys((manifest.exports['.'] as Conditions)['require']!)[0]).toBe('types');
  });
});

/** An ES module for all but those who can require() CommonJS alone. */
function entry(module: string, commonJs: string): Conditions {
  const esm = { types: `./dist/${module}.d.ts`, default: `./dist/${module}.js` };
  return {
    'module-sync': esm,
    module: esm,
    require: {
      types: `./${COMMON_JS}${commonJs}.d.cts`,
      default: `./${COMMON_JS}${commonJs}.cjs`,
    },
    default: esm,
  };
}
