import { expect, it } from 'vitest';
import { remedyFor, sentencesIn } from './voice.mjs';

it('finds sentences that have to be read twice, and lets others pass', () => {
  const found = [
    'Of what the fork made blocking it is taken back.',
    'Who waits is told.',
    'Where nobody listens, it goes on.',
    'It reads the headers and those of the trailers.',
    'A refused connection is no error.',
  ];
  const fine = ['What happens when a worker dies?', 'The worker is no longer ready.'];

  expect([...found, ...fine].filter(remedyFor)).toEqual(found);
});

it('reads comments across their lines, each trailing comment by itself, and cells of a document', () => {
  const program =
    '/**\n * It is `no error` that\n * counts. Then it goes.\n */\ncall(); // once more';
  const page = '# Who waits\n\nOne *thing*.\n\n```ts\n// Who waits\n```\n\n| a cell | another |';
  const read = (text: string, isDocument: boolean) =>
    sentencesIn(text, isDocument).map(({ line, sentence }) => [line, sentence]);

  expect(read(program, false)).toEqual([
    [2, 'It is code that counts.'],
    [2, 'Then it goes.'],
    [5, 'once more'],
  ]);
  expect(read(page, true)).toEqual([
    [3, 'One *thing*.'],
    [9, 'a cell'],
  ]);
});
