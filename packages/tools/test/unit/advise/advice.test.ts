import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { AppMethod } from '../../../../src/contract/snapshot/index.js';
import { addWindow, noWork } from '../../../../src/tools/advise/attribution.js';
import { adviceOf, linesOf } from '../../../../src/tools/advise/report.js';

/** A function: its name, its file and its line. Each method of `METHODS` has ten lines of `/app/app.js`. */
type Frame = readonly [name: string, url: string, line: number];

const CLASS = 0;
const METHODS: readonly Partial<AppMethod>[] = [
  { name: 'Orders.report', route: 'GET /orders/report' },
  { name: 'Orders.list', route: 'GET /orders' },
  { name: 'Prices.compute' },
  { name: 'Orders.stream', refusal: 'Orders.stream is an @Sse() stream' },
  { name: 'Orders.done', cpuBound: true },
];
const lineOf = (name: string): number =>
  10 * METHODS.findIndex((each) => each.name!.endsWith(`.${name}`));

const APP = '/app/app.js';
const method = (name: string): Frame => [name, APP, lineOf(name)];
const IDLE: Frame = ['(idle)', '', -1];
const GARBAGE: Frame = ['(garbage collector)', '', -1];
const PROGRAM: Frame = ['(program)', '', -1];

/** A stack, outermost first, and for how many ms it lasted. V8 takes a sample for each. */
type Run = readonly [ms: number, ...stack: Frame[]];

function profileOf(runs: readonly Run[], line: number | undefined) {
  const ids = new Map<string, number>([['', 1]]);
  const root = { functionName: '(root)', url: '', lineNumber: -1, columnNumber: -1, scriptId: '0' };
  const nodes = [{ id: 1, callFrame: root, children: [] as number[] }];
  const samples: number[] = [];
  for (const [ms, ...stack] of runs) {
    let key = '';
    for (const [functionName, url, lineNumber] of stack) {
      const parent = nodes[ids.get(key)! - 1]!;
      key += `/${functionName}`;
      if (ids.has(key)) continue;
      const id = nodes.length + 1;
      ids.set(key, id);
      parent.children.push(id);
      const callFrame = { functionName, url, lineNumber, columnNumber: 5, scriptId: url };
      const positionTicks = line === undefined ? [] : [{ line, ticks: 1 }];
      nodes.push(Object.assign({ id, callFrame, children: [] }, { positionTicks }));
    }
    samples.push(...Array.from({ length: ms }, () => ids.get(key)!));
  }
  const timeDeltas = samples.map(() => 1_000);
  return { nodes, samples: [...samples, 1], timeDeltas: [0, ...timeDeltas] };
}

/** The advice for one window with these runs. `line`: the line of the file that all samples are in. */
function advise(runs: readonly Run[], { line, file = APP }: { line?: number; file?: string } = {}) {
  const methods = METHODS.map((each, index) => ({
    route: null,
    cpuBound: false,
    refusal: null,
    warnings: [],
    name: '',
    code: index + 1,
    declaredBy: CLASS,
    ...each,
  }));
  const at = (lineNumber: number) => ({ scriptId: file, lineNumber, columnNumber: 0 });
  const places = [at(0), ...methods.map((_, index) => at(10 * index))];
  const extents = places.map(
    (_, index) => (index === CLASS ? [100, 1] : [9, 99]) as [number, number],
  );
  const work = noWork();
  const profile = profileOf(runs, line);
  addWindow(work, { pid: 1, list: { methods, extents }, places, profile });
  return adviceOf({ work, pids: [1], lost: [] });
}

/** These frames for so long, so many times, with an idle loop between. */
const again = (times: number, ms: number, ...stack: Frame[]): Run[] =>
  Array.from({ length: times }, (): Run[] => [
    [ms, ...stack],
    [9, IDLE],
  ]).flat();

const namesOf = ({ methods }: ReturnType<typeof advise>) => methods.map(({ name }) => name);

it('counts a sample for the innermost method, with the libraries that it calls', () => {
  const advice = advise([
    [30, method('report'), method('compute'), ['loop', '/app/node_modules/lib/index.js', 3]],
    [30, IDLE],
    [40, method('report'), method('compute')],
    [900, IDLE],
  ]);

  expect(advice).toMatchObject({
    workers: 1,
    profiledMs: 1_000,
    utilization: 0.07,
    longestMs: 40,
    nothing: null,
    methods: [{ name: 'Prices.compute', route: null, share: 0.07, longestMs: 40 }],
  });
});

it('counts a callback inside a method for the method, and not for the one before it', () => {
  const inside: Frame = ['', APP, lineOf('compute') + 3];
  expect(namesOf(advise(again(2, 50, inside)))).toEqual(['Prices.compute']);
});

it('names the package of code without a method of the app, also where this package is linked', () => {
  const own: Frame = ['own', join(import.meta.dirname, '../../../../src/index.ts'), 3];
  const scoped: Frame = ['scoped', '/app/node_modules/a/node_modules/@b/c/index.js', 3];
  expect(namesOf(advise(again(3, 50, own)))).toEqual(['nestjs-cluster']);
  expect(namesOf(advise(again(3, 50, scoped)))).toEqual(['@b/c']);
});

it('finds a method by its name in its class if a decorator has replaced it', () => {
  const wrapped: Frame = ['compute', APP, 55]; // in the class, and in no method
  const outside: Frame = ['compute', APP, 500];
  expect(namesOf(advise(again(3, 50, wrapped)))).toEqual(['Prices.compute']);
  expect(namesOf(advise(again(3, 50, outside)))).toEqual([expect.stringMatching(/app\/app\.js$/)]);
});

it('ends a slice where another handler begins, and where the loop is idle', () => {
  const { longestMs } = advise([
    [15, method('report')],
    [15, method('list')],
    [15, method('report')],
    [10, IDLE],
    [15, method('report')],
    [900, IDLE],
  ]);
  expect(longestMs).toBe(15);
});

it('names a method that blocks for 20 ms more than once, or takes 5 % in calls that are not short', () => {
  const twice = (ms: number) => again(2, ms, method('report'));
  expect(namesOf(advise([...twice(20), [4_000, IDLE]]))).toEqual(['Orders.report']);
  expect(namesOf(advise([...twice(19), [4_000, IDLE]]))).toEqual([]);
  expect(namesOf(advise([...again(1, 100, method('report')), [4_000, IDLE]]))).toEqual([]);
  expect(namesOf(advise([...twice(6), [200, IDLE]]))).toEqual(['Orders.report']);
  expect(namesOf(advise(again(50, 4, method('list'))))).toEqual([]);
});

it('names a package that blocks the loop again and again without a method of the app', () => {
  const parse: Frame = ['parse', '/app/node_modules/pg-protocol/dist/parser.js', 4];
  const times = (count: number, idleMs: number) =>
    advise([...again(count, 60, parse), [idleMs, IDLE]]);
  const { methods } = times(3, 3_000);
  expect(methods).toMatchObject([{ name: 'pg-protocol', kind: 'rows', cpuBound: null }]);
  expect(methods[0]!.remedy).toContain('query fewer rows');
  expect(namesOf(times(2, 3_000))).toEqual([]);
  expect(namesOf(times(3, 30_000))).toEqual([]);
});

it('gives the p99 of the wait for the loop, with a method and without it', () => {
  // Two slices in 1000 ms: a request waits longer than t with (100 - t + 50 - t) / 1000.
  const runs: Run[] = [
    [100, method('report')],
    [9, IDLE],
    [50, method('list')],
    [841, IDLE],
  ];
  const again: Run[] = [...runs, ...runs];
  const { waitP99Ms, waitP99WithoutMs, methods } = advise(again);
  expect(waitP99Ms).toBeCloseTo(90); // (100 - t) * 2 = 1 % of 2000
  expect(methods.map((each) => [each.name, each.waitP99WithoutMs])).toEqual([
    ['Orders.report', expect.closeTo(40)],
    ['Orders.list', expect.closeTo(90)],
  ]);
  expect(waitP99WithoutMs).toBe(0);
});

it('counts no more garbage for a method than its own time', () => {
  const collected = (own: number): Run[] => [
    [own, method('list')],
    [60, GARBAGE],
    [9, IDLE],
  ];
  expect(namesOf(advise([...collected(5), ...collected(5), [3_000, IDLE]]))).toEqual([]);
  const busy = advise([...collected(30), ...collected(30), [3_000, IDLE]]);
  expect(busy.methods).toMatchObject([{ name: 'Orders.list', longestMs: 60 }]);
});

it('counts no gap between samples in which the process had no CPU', () => {
  const profile = profileOf(
    [
      [2, method('list')],
      [900, IDLE],
    ],
    undefined,
  );
  profile.timeDeltas[1] = 80_000;
  const work = noWork();
  addWindow(work, { pid: 1, list: { methods: [], extents: [] }, places: [], profile });
  expect(work.busyMs).toBe(5);
});

it.each<[kind: string, ...frames: Frame[]]>([
  ['files', ['readFileSync', 'node:fs', 3], ['open', '', -1]],
  ['crypto', ['pbkdf2Sync', 'node:internal/crypto/pbkdf2', 3], ['run', '', -1]],
  ['compression', ['zlibBufferSync', 'node:zlib', 3], ['writeSync', '', -1]],
  ['processes', ['execSync', 'node:child_process', 3], ['spawn', '', -1]],
  ['rows', ['hydrate', '/app/node_modules/typeorm/query/x.js', 3]],
  ['regexp', ['RegExp: ^(a+)+$', '', -1]],
  ['code', ['loop', '/app/node_modules/lib/index.js', 3]],
])('knows %s by the frames', (kind, ...frames) => {
  expect(advise(again(2, 50, method('report'), ...frames)).methods).toMatchObject([{ kind }]);
});

it('knows JSON and regular expressions by the line that runs, unless it is a whole bundle', () => {
  const directory = mkdtempSync(join(tmpdir(), 'nestjs-cluster-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const file = join(directory, 'app.js');
  const bundle = `${'x();'.repeat(100)}JSON.parse(text)`;
  writeFileSync(
    file,
    ['', 'return JSON.parse(text);', 'return /^(a+)+$/.test(text);', bundle].join('\n'),
  );
  const kindAt = (line: number) => {
    return advise(again(2, 50, ['report', file, 0]), { line, file }).methods[0]?.kind;
  };
  expect([1, 2, 3, 4, 5].map(kindAt)).toEqual(['code', 'json', 'regexp', 'code', 'code']);
});

it('says whether @CpuBound() can work, and else why not', () => {
  const { methods } = advise(
    ['report', 'compute', 'stream', 'done'].flatMap((name) => again(2, 50, method(name))),
  );
  expect(
    Object.fromEntries(methods.map((each) => [each.name, [each.cpuBound, each.remedy]])),
  ).toEqual({
    'Orders.report': ['can work', '@CpuBound() can work here'],
    'Prices.compute': ['can work', expect.stringMatching(/can work here; .* declare it async$/)],
    'Orders.stream': ['refused', expect.stringMatching(/: Orders.stream is an @Sse\(\) stream$/)],
    'Orders.done': ['in use', expect.stringContaining('CLUSTER_OFFLOAD')],
  });
});

it('says why there is nothing to gain', () => {
  expect(
    advise([
      [1, PROGRAM],
      [900, IDLE],
    ]).nothing,
  ).toMatch(/busy for 0\.1 %: ask again/);
  const busy = advise([
    [100, PROGRAM],
    [900, IDLE],
  ]);
  expect(busy.nothing).toMatch(/^no method took 5\.0 % .* busy for 10 %, at most 100 ms at once$/);
  expect(linesOf(busy).at(-1)).toMatch(/^Nothing to gain: no method/);
});

it('prints a table, and the windows that are missing', () => {
  const advice = advise([...again(2, 50, method('report')), [891, IDLE]]);
  const lost = [{ slot: 1, reason: 'the worker ended before it was complete' }];
  const lines = linesOf({ ...advice, lost });
  expect(lines).toContain(
    'A window of worker=1 is missing: the worker ended before it was complete',
  );
  expect(lines.find((line) => line.includes('GET /orders/report'))?.split(/ {2,}/)).toEqual([
    '9.9 %',
    '50',
    '0.0',
    'can work',
    'Orders.report',
    'GET /orders/report',
    '/app/app.js:1:6',
  ]);
});
