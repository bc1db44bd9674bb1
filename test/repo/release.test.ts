import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PACKAGES_BESIDE } from '../support/packages-beside.mjs';

const root = join(import.meta.dirname, '../..');
const copy = mkdtempSync(join(tmpdir(), 'release-'));

/** A repository whose release is not prepared. */
beforeAll(() => {
  cpSync(join(root, 'publishable.mjs'), join(copy, 'publishable.mjs'));
  const unfilled = { homepage: '', bugs: { url: '' }, repository: { type: 'git', url: '' } };
  const manifest = { name: 'nestjs-cluster', version: '1.2.3', ...unfilled };
  writeFileSync(join(copy, 'package.json'), JSON.stringify(manifest, null, 2));
  writeFileSync(join(copy, 'CHANGELOG.md'), '# Changelog\n\n## [1.2.3] - unreleased\n');
  writeFileSync(join(copy, 'SECURITY.md'), 'Write to SECURITY-ADDRESS.\n');
});
afterAll(() => rmSync(copy, { recursive: true }));

function fill(file: string, pattern: RegExp, by: string): void {
  const path = join(copy, file);
  writeFileSync(path, readFileSync(path, 'utf8').replace(pattern, by));
}

const publish = () =>
  spawnSync(process.execPath, ['publishable.mjs'], { cwd: copy, encoding: 'utf8' });

it('is refused until what only the release knows is filled in, and no longer', () => {
  const refused = publish();
  expect(refused.status).toBe(1);
  expect(refused.stderr.trim().split('\n')).toEqual([
    'nestjs-cluster: fill in "repository" in package.json',
    'nestjs-cluster: fill in "homepage" in package.json',
    'nestjs-cluster: fill in "bugs" in package.json',
    'nestjs-cluster: write the date of 1.2.3 in CHANGELOG.md',
    'nestjs-cluster: fill in the address in SECURITY.md',
  ]);

  fill('package.json', /"(homepage|url)": ""/g, '"$1": "https://example.com"');
  fill('CHANGELOG.md', /- unreleased/, '- 2030-01-31');
  fill('SECURITY.md', /SECURITY-ADDRESS/, 'security@example.com');
  expect(publish()).toMatchObject({ status: 0, stderr: '' });
});

it.each(['.', ...PACKAGES_BESIDE.map((name) => `packages/${name}`)])(
  'is refused by npm for %s too',
  (folder) => {
    const { scripts, version, peerDependencies } = JSON.parse(
      readFileSync(join(root, folder, 'package.json'), 'utf8'),
    ) as Record<string, Record<string, string>> & { version: string };
    expect(scripts!['prepublishOnly']).toMatch(/^node (\.\.\/\.\.\/)?publishable\.mjs$/);
    expect(peerDependencies!['nestjs-cluster'] ?? version).toBe(version);
  },
);
