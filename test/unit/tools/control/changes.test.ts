import { expect, it } from 'vitest';
import { scale } from '../../../../src/tools/control/changes.js';

it('scale says what it has done', async () => {
  const answer = { from: 2, workers: 4, ready: 4 };
  const post = async <T>() => answer as T;
  const text = 'scaled from 2 to 4 workers';
  expect(await scale({ post }, 4)).toEqual({ answer, done: true, text });
});
