import { describe, expect, it } from 'vitest';
import { framesBelow } from '../../../../src/worker/watchdog/watchdog.js';

/** Frames that the answer itself adds. */
const ASKING = [
  'Error',
  '    at describeMainThread (file:///app/node_modules/nestjs-cluster/dist/worker/watchdog/watchdog.js:60:20)',
  '    at Reflect.set (file:///app/node_modules/nestjs-cluster/dist/worker/watchdog/watchdog.js:40:60)',
];
const BLOCK = [
  '    at spin (/app/dist/cats.controller.js:3:7)',
  '    at CatsController.findAll (/app/dist/cats.controller.js:9:1)',
  '    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)',
];
const FRAMES = [
  'spin (/app/dist/cats.controller.js:3:7)',
  'CatsController.findAll (/app/dist/cats.controller.js:9:1)',
  'process.processTicksAndRejections (node:internal/process/task_queues:95:5)',
];

describe('the frames of a block', () => {
  it.each(['    at <anonymous>:1:51', '    at eval (<anonymous>:1:51)'])(
    'are those below the question: %s',
    (question) => {
      expect(framesBelow([...ASKING, question, ...BLOCK].join('\n'))).toEqual(FRAMES);
    },
  );

  it.each(['<anonymous> (/app/dist/main.js:1:51)', 'new <anonymous> (/app/dist/main.js:1:51)'])(
    'are all where the question is not to be seen: %s is no question',
    (anonymous) => {
      const stack = ['Error', BLOCK[0], `    at ${anonymous}`, BLOCK[1], BLOCK[2]];
      expect(framesBelow(stack.join('\n'))).toEqual([FRAMES[0], anonymous, FRAMES[1], FRAMES[2]]);
    },
  );

  it('are not cut off at an anonymous function of the app', () => {
    const anonymous = '    at <anonymous> (/app/dist/main.js:1:51)';
    const stack = [...ASKING, '    at <anonymous>:1:51', anonymous, ...BLOCK];
    expect(framesBelow(stack.join('\n'))).toEqual([
      '<anonymous> (/app/dist/main.js:1:51)',
      ...FRAMES,
    ]);
  });

  it('begin below the first question where the app evaluates code itself', () => {
    const stack = [
      ...ASKING,
      '    at <anonymous>:1:51',
      BLOCK[0]!,
      '    at <anonymous>:7:1',
      BLOCK[1]!,
    ];
    expect(framesBelow(stack.join('\n'))).toEqual([FRAMES[0], '<anonymous>:7:1', FRAMES[1]]);
  });

  it('are 20 at most, the innermost', () => {
    const deep = Array.from({ length: 50 }, (_, i) => `    at f${i} (/app/main.js:${i}:1)`);
    const frames = framesBelow([...ASKING, '    at <anonymous>:1:51', ...deep].join('\n'));
    expect(frames).toHaveLength(20);
    expect([frames[0], frames[19]]).toEqual(['f0 (/app/main.js:0:1)', 'f19 (/app/main.js:19:1)']);
  });

  it('name a function that calls itself once, so that the route is among them', () => {
    const walk = ['walk (/app/tree.js:3:7)', 'Array.map (<anonymous>)', '/app/tree.js:4:9'];
    const deep = Array.from({ length: 40 }, () => walk).flat();
    const outer = ['<anonymous> (/app/a.js:1:1)', '<anonymous> (/app/a.js:2:1)', FRAMES[1]!];
    const stack = ['walk (/app/tree.js:2:1)', ...deep, ...outer].map((frame) => `    at ${frame}`);
    expect(framesBelow([...ASKING, '    at <anonymous>:1:51', ...stack].join('\n'))).toEqual([
      'walk (/app/tree.js:2:1), 41 times',
      'Array.map (<anonymous>), 40 times',
      '/app/tree.js:4:9, 40 times',
      ...outer,
    ]);
  });

  it.each(['', 'Error', 'undefined', '[object Array]'])('are none in %j', (stack) => {
    expect(framesBelow(stack)).toEqual([]);
  });
});
