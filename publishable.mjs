// Refuses to publish a package whose release is not prepared: `npm publish` runs it in the folder of
// the package. CONTRIBUTING.md has the steps of a release.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = import.meta.dirname;

/** @param folder of a package. @returns what is missing for a release, one line each. */
export function missingForRelease(folder) {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const { name, version, repository, homepage, bugs, peerDependencies = {} } = manifest;
  const core = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const missing = Object.entries({ repository: repository?.url, homepage, bugs: bugs?.url })
    .filter(([, value]) => !value)
    .map(([field]) => `fill in "${field}" in package.json`);
  if (version !== core.version) missing.push(`set the version of the core, ${core.version}`);
  const wanted = peerDependencies['nestjs-cluster'] ?? core.version;
  if (wanted !== core.version)
    missing.push(`set the peer dependency on nestjs-cluster to ${core.version}`);
  const changes = readFileSync(join(root, 'CHANGELOG.md'), 'utf8');
  if (/^## \[(\S+)\] - \d{4}-\d\d-\d\d$/m.exec(changes)?.[1] !== version)
    missing.push(`write the date of ${version} in CHANGELOG.md`);
  const security = readFileSync(join(root, 'SECURITY.md'), 'utf8');
  if (security.includes('SECURITY-ADDRESS')) missing.push('fill in the address in SECURITY.md');
  return missing.map((line) => `${name}: ${line}`);
}

if (process.argv[1] === import.meta.filename) {
  const missing = missingForRelease(process.cwd());
  for (const line of missing) console.error(line);
  process.exitCode = missing.length > 0 ? 1 : 0;
}
