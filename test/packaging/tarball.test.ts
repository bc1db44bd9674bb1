import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { describe, expect, it } from 'vitest';
import { plainEnvironment, runCommand } from '../support/run-command.js';
import { packed } from './support/tarball.js';
import { ROOT } from './support/temporary-project.js';

/** For test runners. Shared chunks have no declarations: the entries use the ES modules' ones. */
const COMMON_JS = 'dist/common-js/';

const tarball = packed();

describe('the tarball', () => {
  it('holds dist/ and its documents, and nothing else', () => {
    const built = readdirSync(join(ROOT, 'dist'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)));
    const documents = ['LICENSE', 'README.md', 'package.json'];

    expect(tarball.files).toEqual([...documents, ...built].sort());
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

  it('has no problem that publint knows', async () => {
    const { messages, pkg } = await publint({
      pack: { tarball: new Uint8Array(readFileSync(tarball.path)).buffer },
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
