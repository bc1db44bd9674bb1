import { describe, expect, it } from 'vitest';
import { commandLine, printed } from '../../support/command-line-here.js';

describe('nestjs-cluster tune', () => {
  it('explains itself', async () => {
    const help = await printed('tune', '--help');

    expect(help).toContain('Usage: nestjs-cluster tune [options] --url <path> -- <command...>');
    for (const option of ['--url', '--max-workers', '--connections', '--seconds', '--rounds']) {
      expect(help).toContain(option);
    }
  });

  it.each([
    { args: [], says: "required option '--url <path>'" },
    { args: ['--url'], says: "'--url <path>' argument missing" },
    { args: ['--url', 'cats', '--', 'node'], says: 'expected a path such as /cats' },
    { args: ['--url', '/cats'], says: "behind '--'" },
    { args: ['--url', '/cats', '--'], says: "behind '--'" },
    { args: ['--url', '/', '--max-workers', '0', '--', 'node'], says: 'from 1 to 256' },
    { args: ['--url', '/', '--max-workers', '257', '--', 'node'], says: 'from 1 to 256' },
    { args: ['--url', '/', '--connections', '0', '--', 'node'], says: 'from 1 to 10000' },
    { args: ['--url', '/', '--seconds', '0.5', '--', 'node'], says: 'from 1 to 3600' },
    { args: ['--url', '/', '--rounds', '-1', '--', 'node'], says: 'from 1 to 100' },
    { args: ['--url', '/', '--header', 'nonsense', '--', 'node'], says: 'expected a header' },
    { args: ['--url', '/', '--health-path', 'health', '--', 'node'], says: 'expected a path' },
    { args: ['--url', '/', '--health-path', '/a?b', '--', 'node'], says: 'expected a path' },
    { args: ['--url', '/', '--nope', '--', 'node'], says: "unknown option '--nope'" },
  ])('refuses $args as wrong usage', async ({ args, says }) => {
    const { code, stdout, stderr } = await commandLine('tune', ...args);

    expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
    expect(stderr).toMatch(/^error: /);
    expect(stderr).toContain(says);
  });
});
