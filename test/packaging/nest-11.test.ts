import { beforeAll, expect, it } from 'vitest';
import { describeNestProject, NO_TYPESCRIPT } from './support/describe-nest-project.js';
import { makeMonorepo } from './support/monorepo.js';
import { WatchedProject } from './support/watched-project.js';

const SWC_NODE = { execArgv: ['-r', '@swc-node/register'], program: 'src/main.ts' };

describeNestProject(11, {
  packages: ['@swc/cli', '@swc/core', '@swc-node/register'],
  watch: (project) => {
    // Not in the test, which may run again.
    beforeAll(() => project().edit('src/app.controller.ts', [[/\}\s*$/, BLOCK]]));

    it('has one cluster after each edit, and none after Ctrl-C', async () => {
      const watched = await WatchedProject.start(project());
      await watched.settles('Hello World!');

      await watched.say('edited');
      await watched.settles('edited');

      // In the middle of a start, twice.
      for (const text of ['early', 'earlier']) {
        const { starts } = watched;
        await watched.say(text);
        await watched.begins(starts);
      }
      await watched.say('last');
      await watched.settles('last');

      await watched.say(`wrong'; const wrong: number = 'text`);
      await watched.cli.until('an error', () => watched.cli.output.includes('Found 1 error'));
      expect(await watched.ask()).toBe('last');
      await watched.say('mended');
      await watched.settles('mended');

      // It cannot let go of the port before it is through.
      const blocked = watched.ask('/block');
      await watched.cli.until('the request', () => watched.cli.output.includes('blocks'));
      await watched.say('while it drains');
      await watched.settles('while it drains');
      expect(await blocked).toBe('mended');

      await watched.interrupt();
      expect(watched.cli.all('failed')).toEqual([]);
    });
  },
  starts: [
    {
      name: 'SWC',
      prepare: (project) => project.command('nest build -b swc'),
      program: 'dist/main.js',
    },
    {
      name: 'one file by webpack',
      prepare: async (project) => {
        await project.takePage('development.md', "from './app.module'");
        await project.command('nest build -b webpack');
      },
      program: 'dist/main.js',
    },
    {
      name: '@swc-node/register for CommonJS',
      ...SWC_NODE,
      refusal: NO_TYPESCRIPT,
    },
    {
      name: 'a monorepo, by webpack',
      prepare: (project) =>
        makeMonorepo(
          project,
          // A terminal asks for the prefix.
          'schematics @nestjs/schematics:library --name=heavy --prefix=@app --no-dry-run',
        ),
      program: 'dist/apps/app/main.js',
    },
  ],
});

const BLOCK = `
  @Get('block')
  block() {
    console.log('blocks');
    for (const end = Date.now() + 2_000; Date.now() < end; );
    return this.appService.getHello();
  }
}
`;
