import { describe, expect, it } from 'vitest';
import { describeNestProject } from './support/describe-nest-project.js';
import { WatchedProject } from './support/watched-project.js';

describeNestProject(11, (project) => {
  describe("'nest start --watch'", () => {
    it('has one cluster after each edit, and none after Ctrl-C', async () => {
      await project().edit('src/app.controller.ts', [[/\}\s*$/, BLOCK]]);
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

      watched.interrupt();
      await watched.cli.gone();
      expect(watched.cli.all('failed')).toEqual([]);
    });
  });
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
