import { expect, it } from 'vitest';
import { commandLine } from '../../support/command-line-here.js';

it.each([
  { what: 'a wrong option', args: ['--nope'], says: "unknown option '--nope'" },
  { what: 'too much', args: ['main.js', 'more'], says: 'too many arguments' },
  { what: 'a number that is none', args: ['--workers', '0'], says: 'from 1 to 256' },
  { what: 'a file that is not there', args: ['nope.js'], says: 'there is no file "nope.js"' },
  { what: 'a directory', args: ['test'], says: 'there is no file "test"; build the app first' },
])('doctor is refused as wrong usage: $what', async ({ args, says }) => {
  const { code, stdout, stderr } = await commandLine('doctor', ...args);

  expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
  expect(stderr).toContain(says);
});
