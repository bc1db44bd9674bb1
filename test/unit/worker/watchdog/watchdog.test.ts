import { describe, expect, it } from 'vitest';
import { framesBelow } from '../../../../src/worker/watchdog/watchdog.js';

/** Frames that the answer itself adds. */
const ASKING = [
  'describeMainThread (file:///app/node_modules/nestjs-cluster/dist/worker/watchdog/watchdog.js:60:20)',
  'Reflect.set (file:///app/node_modules/nestjs-cluster/dist/worker/watchdog/watchdog.js:40:60)',
];
const ASKED = [...ASKING, '<anonymous>:1:51'];
const FRAMES = [
  'spin (/app/dist/cats.controller.js:3:7)',
  'CatsController.findAll (/app/dist/cats.controller.js:9:1)',
  'process.processTicksAndRejections (node:internal/process/task_queues:95:5)',
];

const framesOf = (stack: readonly string[]) =>
  framesBelow(['Error', ...stack.map((frame) => `    at ${frame}`)].join('\n'));

describe('the frames of a block', () => {
  const [spin, ...outer] = FRAMES as [string, ...string[]];
  const OWN = '<anonymous> (/app/dist/main.js:1:51)';

  it.each([
    ['those below the question', ASKED, FRAMES],
    ['those below the question by eval', [...ASKING, 'eval (<anonymous>:1:51)'], FRAMES],
    ['all if no question is seen', [], [spin, OWN, ...outer]],
    ['all beside a constructor, which is no question', [], [spin, `new ${OWN}`, ...outer]],
    ['not cut off at an anonymous function of the app', ASKED, [OWN, ...FRAMES]],
    ['those below the first question', ASKED, [spin, '<anonymous>:7:1', ...outer]],
  ])('are %s', (_, asking, frames) => {
    expect(framesOf([...asking, ...frames])).toEqual(frames);
  });

  it('are 20 at most, the innermost', () => {
    const deep = Array.from({ length: 50 }, (_, i) => `f${i} (/app/main.js:${i}:1)`);
    const frames = framesOf([...ASKED, ...deep]);
    expect(frames).toHaveLength(20);
    expect([frames[0], frames[19]]).toEqual(['f0 (/app/main.js:0:1)', 'f19 (/app/main.js:19:1)']);
  });

  it('name a function that calls itself once, so that the route is among them', () => {
    const walk = ['walk (/app/tree.js:3:7)', 'Array.map (<anonymous>)', '/app/tree.js:4:9'];
    const deep = Array.from({ length: 40 }, () => walk).flat();
    const above = ['<anonymous> (/app/a.js:1:1)', '<anonymous> (/app/a.js:2:1)', FRAMES[1]!];
    expect(framesOf([...ASKED, 'walk (/app/tree.js:2:1)', ...deep, ...above])).toEqual([
      'walk (/app/tree.js:2:1), 41 times',
      'Array.map (<anonymous>), 40 times',
      '/app/tree.js:4:9, 40 times',
      ...above,
    ]);
  });

  it.each(['', 'Error', 'undefined', '[object Array]'])('are none in %j', (stack) => {
    expect(framesBelow(stack)).toEqual([]);
  });
});
