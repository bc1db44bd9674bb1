import { copyFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packed } from './support/tarball.js';
import { dependencies, TemporaryProject } from './support/temporary-project.js';

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
const ESM = { type: 'module', ...NODENEXT };
const COMMONJS = { type: 'commonjs', ...NODENEXT };
const BUNDLED = { type: 'module', module: 'esnext', moduleResolution: 'bundler' };
const OLD_COMMONJS = { type: 'commonjs', module: 'commonjs', moduleResolution: 'bundler' };

// A check takes seconds: each setup is checked with the version of Nest that makes such projects.
describe.each([
  { nest: 12, workspaces: [''], setups: [ESM, BUNDLED] },
  { nest: 11, workspaces: ['', 'test/fixtures/nest-11'], setups: [COMMONJS, OLD_COMMONJS] },
])('the types, with Nest $nest', ({ workspaces, setups }) => {
  let project: TemporaryProject;

  // That npm installs it is in installed.test.ts.
  beforeAll(async () => {
    project = await TemporaryProject.create();
    const tarball = packed();
    await project.unpack(tarball.path, 'nestjs-cluster');
    await project.link([...PACKAGES, ...dependencies()], workspaces);
  });

  afterAll(() => project.remove());

  it.each(setups)(
    'take what is right and refuse what is wrong: $type, $module, $moduleResolution',
    async ({ type, ...options }) => {
      const folder = `${type}-${options.module}-${options.moduleResolution}`;
      await project.write({ [`${folder}/package.json`]: JSON.stringify({ type }) });
      const path = project.path(folder, 'public-types.ts');
      await copyFile(join(import.meta.dirname, 'fixtures/public-types.ts'), path);

      const checked = check(path, options);

      expect(checked.files).toContain(project.path('node_modules/nestjs-cluster/dist/index.d.ts'));
      expect(checked.errors).toEqual([]);
    },
  );
});

const COMPILER_OPTIONS = {
  target: 'es2023',
  lib: ['es2023'],
  types: ['node'],
  strict: true,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
  noEmit: true,
  // Our own declarations are checked, not only used.
  skipLibCheck: false,
};

/** Compiles a file as tsc does. @returns what was checked, and the errors: neither of what others publish. */
function check(path: string, options: object): { files: string[]; errors: string[] } {
  const config = ts.convertCompilerOptionsFromJson(
    { ...COMPILER_OPTIONS, ...options },
    dirname(path),
  );
  const program = ts.createProgram([path], config.options);
  const checked = program
    .getSourceFiles()
    .filter(({ fileName }) => !/\/node_modules\/(?!nestjs-cluster\/)/.test(fileName));
  const diagnostics = [
    ...config.errors,
    ...program.getConfigFileParsingDiagnostics(),
    ...program.getOptionsDiagnostics(),
    ...program.getGlobalDiagnostics(),
    ...checked.flatMap((file) => [
      ...program.getSyntacticDiagnostics(file),
      ...program.getSemanticDiagnostics(file),
    ]),
  ];
  return {
    files: checked.map(({ fileName }) => fileName),
    errors: diagnostics.map(({ file, start = 0, messageText }) =>
      [file?.fileName, start, ts.flattenDiagnosticMessageText(messageText, ' ')].join(':'),
    ),
  };
}
