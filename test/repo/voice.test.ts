import { expect, it } from 'vitest';
import { remedyFor, sentencesIn } from './voice.mjs';

it.each([
  'Of what the fork made blocking it is taken back.',
  'Who waits is told.',
  'Where nobody listens, it goes on.',
  'It reads the headers and those of the trailers.',
  'A refused connection is no error.',
])('finds "%s"', (sentence) => {
  expect(remedyFor(sentence)).toBeTypeOf('string');
});

it.each([
  'Node makes the pipe blocking at each fork, so we set it back.',
  'What happens when a worker dies?',
  'The worker is no longer ready.',
])('lets "%s" pass', (sentence) => {
  expect(remedyFor(sentence)).toBeUndefined();
});

it('reads comments across their lines, and each tag and trailing comment by itself', () => {
  const program = `
/**
 * It is \`no error\` that
 * counts. Then it goes.
 *
 * @returns the first one
 */
call(); // once more
// A line
// of two.
const text = 'Who waits';`;

  expect(sentencesIn(program, false)).toEqual([
    { line: 3, sentence: 'It is code that counts.' },
    { line: 3, sentence: 'Then it goes.' },
    { line: 6, sentence: 'the first one' },
    { line: 8, sentence: 'once more' },
    { line: 9, sentence: 'A line of two.' },
  ]);
});

it('reads paragraphs and cells of a document, not its headings and programs', () => {
  const page =
    '# Who waits\n\nOne *thing*. [Two](x.md) things.\n\n```ts\n// Who waits\n```\n\n| a cell | another |';

  expect(sentencesIn(page, true).map(({ line, sentence }) => [line, sentence])).toEqual([
    [3, 'One *thing*.'],
    [3, 'Two things.'],
    [9, 'a cell'],
  ]);
});
