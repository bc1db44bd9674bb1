import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packInto } from './support/tarball.js';
import { locked, TemporaryProject } from './support/temporary-project.js';

const PACKAGES = [
  '@nestjs/common',
  '@nestjs/core',
  '@nestjs/platform-express',
  '@nestjs/platform-fastify',
  '@nestjs/terminus',
  '@types/node',
  'prom-client',
  'reflect-metadata',
  'rxjs',
];

const NODENEXT = { module: 'nodenext', moduleResolution: 'nodenext' };
// Once for each Nest our own declarations are checked, not only used: it takes twice as long.
const ESM = { type: 'module', ...NODENEXT, skipLibCheck: false };
const COMMONJS = { type: 'commonjs', ...NODENEXT, skipLibCheck: true };
const BUNDLED = {
  type: 'module',
  module: 'esnext',
  moduleResolution: 'bundler',
  skipLibCheck: true,
};
const OLD_COMMONJS = { ...BUNDLED, type: 'commonjs', module: 'commonjs' };

describe.each([
  { nest: 12, workspace: '', setups: [ESM, BUNDLED] },
  { nest: 11, workspace: 'test/fixtures/nest-11', setups: [ESM, COMMONJS, OLD_COMMONJS] },
])('the types, with Nest $nest', ({ workspace, setups }) => {
  let project: TemporaryProject;

  beforeAll(async () => {
    project = await TemporaryProject.create();
    const tarball = await packInto(project.directory);
    await project.install([tarball.path, ...locked(PACKAGES, workspace)]);
  });

  afterAll(() => project.remove());

  it.each(setups)(
    'take what is right and refuse what is wrong: $type, $module, $moduleResolution',
    async ({ type, ...options }) => {
      const folder = `${type}-${options.module}-${options.moduleResolution}`;
      await project.write({
        [`${folder}/package.json`]: JSON.stringify({ type }),
        [`${folder}/tsconfig.json`]: JSON.stringify({
          compilerOptions: {
            ...options,
            target: 'es2023',
            lib: ['es2023'],
            types: ['node'],
            strict: true,
            experimentalDecorators: true,
            emitDecoratorMetadata: true,
            noEmit: true,
          },
        }),
      });
      await copyFile(
        join(import.meta.dirname, 'fixtures/public-types.ts'),
        project.path(folder, 'public-types.ts'),
      );

      const { stdout } = await project.tsc('-p', folder, '--listFiles');

      expect(stdout).toContain(`${folder}/public-types.ts\n`);
      expect(stdout).toContain('node_modules/nestjs-cluster/dist/index.d.ts\n');
      expect(errorsIn(stdout)).toEqual([]);
    },
  );
});

/** Lines of tsc's output that tell an error, without those of other packages' files. */
function errorsIn(output: string): string[] {
  return output
    .split('\n')
    .filter((line) => /\berror TS\d+:/.test(line))
    .filter((line) => !/^[^(]*node_modules\/(?!nestjs-cluster\/)/.test(line));
}
