import { describe, expect, it } from 'vitest';
import type { CallFrame } from '../../../../src/tools/profiles/call-tree.js';
import { describeCpu, summarizeCpu } from '../../../../src/tools/profiles/cpu-summary.js';
import { describeHeap, summarizeHeap } from '../../../../src/tools/profiles/heap-summary.js';

function frame(functionName: string, url = '', line = 0): CallFrame {
  return { functionName, url, lineNumber: line - 1, columnNumber: url === '' ? -1 : 4 };
}

const CONTROLLER = frame('list', 'file:///app/dist/shop.controller.js', 20);
const SERVICE = frame('find', 'file:///app/dist/shop.service.js', 9);
const AT_CONTROLLER = 'list (/app/dist/shop.controller.js:20:5)';
const AT_SERVICE = 'find (/app/dist/shop.service.js:9:5)';
const ROUTER = frame('handle', 'file:///app/node_modules/router/index.js', 7);

describe('the summary of a CPU profile', () => {
  const nodes = [
    { id: 1, callFrame: frame('(root)'), children: [2, 3] },
    { id: 2, callFrame: frame('(idle)') },
    { id: 3, callFrame: ROUTER, children: [4] },
    { id: 4, callFrame: CONTROLLER, children: [5, 8] },
    { id: 5, callFrame: SERVICE, children: [6, 7] },
    { id: 6, callFrame: SERVICE },
    { id: 7, callFrame: frame('stringify') },
    { id: 8, callFrame: frame('stringify') },
  ];
  // A sample's duration is the time until the next sample. The last sample's duration is unknown.
  const profile = (...samples: readonly (readonly [node: number, ms: number])[]) => ({
    nodes,
    samples: [...samples.map(([node]) => node), 2],
    timeDeltas: [5_000, ...samples.map(([, ms]) => ms * 1_000)],
  });

  it('names the functions that took most of the time, and what called them', () => {
    const summary = summarizeCpu(profile([2, 400], [7, 40], [5, 300], [6, 200], [8, 60], [3, 1]));

    expect(summary).toEqual({
      ms: 1_001,
      busyMs: 601,
      functions: [
        { function: AT_SERVICE, ms: 500, calledBy: [AT_CONTROLLER] },
        { function: 'stringify', ms: 60, calledBy: [AT_CONTROLLER] },
        { function: 'stringify', ms: 40, calledBy: [AT_SERVICE, AT_CONTROLLER] },
        { function: 'handle (/app/node_modules/router/index.js:7:5)', ms: 1, calledBy: [] },
      ],
    });
    expect(describeCpu(summary).slice(0, 3)).toEqual([
      'It was busy for 0.60 s of 1.0 s, most of it in:',
      `  83 %  0.50 s  ${AT_SERVICE}`,
      `                  called by ${AT_CONTROLLER}`,
    ]);
  });

  it('says that there was nothing to do', () => {
    expect(describeCpu(summarizeCpu(profile([2, 1_000])))).toEqual([
      'The worker had nothing to do.',
    ]);
  });

  it('shows five functions, and nothing that a terminal would obey', () => {
    const many = Array.from({ length: 9 }, (_, i) => ({
      id: i,
      callFrame: frame(`f${i}\u001b[2J\u0007`, `file:///app/%zz${i}.js`, 1),
    }));
    const ids = many.map(({ id }) => id);
    const timeDeltas = [0, ...ids.map((id) => 9_000 - id)];
    const { functions } = summarizeCpu({ nodes: many, samples: ids, timeDeltas });

    expect(functions.map((each) => each.function)).toEqual(
      [0, 1, 2, 3, 4].map((i) => `f${i} (file:///app/%zz${i}.js:1:5)`),
    );
  });
});

describe('the summary of a heap profile', () => {
  const node = (id: number, callFrame: CallFrame, ...children: object[]) => ({
    id,
    callFrame,
    children: children as never[],
  });
  const head = node(
    1,
    frame('(root)'),
    node(2, CONTROLLER, node(3, SERVICE, node(4, frame('push')))),
    node(5, frame('Socket', 'node:net', 3)),
  );
  const sample = (nodeId: number, ordinal: number, size: number) => ({ nodeId, ordinal, size });

  it('puts the function first that holds what is oldest, by the name that the app gave it', () => {
    const summary = summarizeHeap({
      head,
      samples: [
        sample(4, 10, 3e6),
        sample(3, 100, 1e6),
        sample(2, 60, 8e6), // more, but none of it is old
        sample(5, 40, 5e6),
        sample(99, 1, 1), // of a node that is not there
      ],
    });

    expect(summary).toEqual({
      heldBytes: 17e6,
      olderBytes: 8e6,
      functions: [
        {
          function: AT_SERVICE,
          heldBytes: 4e6,
          olderBytes: 3e6,
          isOfApp: true,
          calledBy: [AT_CONTROLLER],
        },
        {
          function: 'Socket (node:net:3:5)',
          heldBytes: 5e6,
          olderBytes: 5e6,
          isOfApp: false,
          calledBy: [],
        },
        { function: AT_CONTROLLER, heldBytes: 8e6, olderBytes: 0, isOfApp: true, calledBy: [] },
      ],
    });
    expect(describeHeap(summary).slice(1)).toEqual([
      'A leak also holds memory allocated in the first half, a full cache does not:',
      '  first half      held  allocated by',
      `      3.0 MB    4.0 MB  ${AT_SERVICE}`,
      `                          called by ${AT_CONTROLLER}`,
      '      5.0 MB    5.0 MB  Socket (node:net:3:5)',
      `        0 kB    8.0 MB  ${AT_CONTROLLER}`,
    ]);
  });

  it('says that it has seen no leak, whatever Node holds', () => {
    const samples = [sample(5, 1, 1e6), sample(2, 10, 1e6)];
    expect(describeHeap(summarizeHeap({ head, samples }))).toContain(
      'No function of the app holds memory of the first half. A small leak needs more --seconds:',
    );
  });

  it('says that nothing is held', () => {
    expect(describeHeap(summarizeHeap({ head, samples: [] }))).toEqual([
      'Nothing that was allocated during the profile is still held.',
    ]);
  });
});
