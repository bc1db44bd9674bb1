import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { packed } from './support/tarball.js';
import { dependencies, ROOT, TemporaryProject } from './support/temporary-project.js';

const { exports, peerDependencies, peerDependenciesMeta } = JSON.parse(
  readFileSync(join(ROOT, 'package.json'), 'utf8'),
) as Record<'exports' | 'peerDependencies' | 'peerDependenciesMeta', object>;

let project: TemporaryProject;

afterAll(() => project.remove());

it('each extra asks for the package that it extends, and for no other optional peer', async () => {
  project = await TemporaryProject.create();
  await project.unpack(packed().path, 'nestjs-cluster');
  const required = Object.keys(peerDependencies).filter((peer) => !(peer in peerDependenciesMeta));
  await project.link([...dependencies(), ...required], ['']);
  const extras = Object.keys(exports)
    .filter((entry) => !['.', './bootstrap', './package.json'].includes(entry))
    .sort();
  await project.write({
    'main.mjs': `
      const missing = ({ message }) => /Cannot find package '(.+?)'/.exec(message)?.[1] ?? message;
      for (const entry of ${JSON.stringify(extras)}) {
        const needs = await import(entry.replace('.', 'nestjs-cluster')).then(() => null, missing);
        console.log(JSON.stringify([entry, needs]));
      }
    `,
  });

  const { stdout } = await project.node('main.mjs');

  const needs = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);
  expect(needs).toEqual([
    ['./extension', null],
    ['./schedule', null],
    ['./testing', null],
  ]);
});
