import { expect, it } from 'vitest';
import { describeNestProject, NO_TYPESCRIPT } from './support/describe-nest-project.js';
import type { NestProject } from './support/nest-project.js';
import { makeMonorepo } from './support/monorepo.js';
import { WatchedProject } from './support/watched-project.js';

const TSX = { program: 'node_modules/tsx/dist/cli.mjs', args: ['src/main.ts'] };

/** For compilers that emit no types of parameters. */
async function nameDependency(project: NestProject): Promise<void> {
  if ((await project.read('src/app.controller.ts')).includes('@Inject(')) return;
  await project.edit('src/app.controller.ts', [
    ['{ Controller, Get }', '{ Controller, Get, Inject }'],
    ['private readonly', '@Inject(AppService) private readonly'],
  ]);
}

describeNestProject(12, {
  packages: [
    // Not the newest: npm installs a release without its binding if that is not in the registry yet.
    '@rspack/core@2.3.3',
    'webpack-node-externals',
    'tsconfig-paths-webpack-plugin',
    '@swc/core',
    '@swc-node/register',
    'tsx',
  ],
  watch: (project) => {
    it('has one cluster after an edit, and none after Ctrl-C', async () => {
      const watched = await WatchedProject.start(project());
      await watched.settles('Hello World!');
      await watched.say('edited');
      await watched.settles('edited');

      await watched.interrupt();
      expect(watched.cli.all('failed')).toEqual([]);
    });
  },
  starts: [
    {
      name: '@swc-node/register for ES modules',
      execArgv: ['--import', '@swc-node/register/esm-register'],
      program: 'src/main.ts',
    },
    {
      name: 'one file by rspack',
      prepare: (project) => project.command('nest build -b rspack'),
      program: 'dist/main.js',
    },
    {
      name: 'tsx',
      prepare: nameDependency,
      ...TSX,
      node: 22,
    },
    { name: 'tsx on Node 20', ...TSX, node: 20, refusal: NO_TYPESCRIPT, onlyRefused: true },
    {
      name: 'one file by esbuild',
      prepare: async (project) => {
        await nameDependency(project);
        await project.command(
          'esbuild src/main.ts --bundle --platform=node --format=esm --packages=external --outfile=dist/one.js',
        );
      },
      program: 'dist/one.js',
    },
    {
      name: 'a monorepo, by rspack',
      prepare: (project) => makeMonorepo(project, 'nest generate library heavy'),
      program: 'dist/apps/app/main.js',
    },
  ],
});
