import { expect, it } from 'vitest';
import { scale } from '../../../../src/tools/control/changes.js';

it.each([
  { wanted: 4, answer: { from: 2, workers: 4, ready: 4 }, text: 'scaled from 2 to 4 workers' },
  { wanted: 'auto', answer: { from: 4, workers: 2, ready: 2 }, text: 'scaled from 4 to 2 workers' },
  {
    wanted: 1,
    answer: { from: 2, workers: 2, ready: 2 },
    text: 'scaled from 2 to 2 workers, not 1: workers.min is 2',
  },
] as const)('scale($wanted) says what it has done: $text', async ({ wanted, answer, text }) => {
  const post = async <T>() => answer as T;
  expect(await scale({ post }, wanted)).toEqual({ answer, done: true, text });
});
