import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { addProfile, noWork } from '../../src/advise/attribution.js';
import { collect } from '../../src/advise/collect.js';
import { adviceOf, linesOf } from '../../src/advise/report.js';
import { ToolError } from '../../src/output.js';
import { clientOf, statusOf } from '../support/status.js';

/** A function: its name and its file. */
type Frame = readonly [name: string, url: string];

const APP = '/app/app.js';
const own = (name: string): Frame => [name, APP];
const IDLE: Frame = ['(idle)', ''];
const GARBAGE: Frame = ['(garbage collector)', ''];

/** For how many ms a stack ran, outermost frame first. V8 takes a sample each ms. */
type Run = readonly [ms: number, ...stack: Frame[]];

/** @param line the line of all samples. */
function profileOf(runs: readonly Run[], line?: number) {
  const ids = new Map<string, number>([['', 1]]);
  const root = { functionName: '(root)', url: '', lineNumber: -1, columnNumber: -1 };
  const nodes = [
    { id: 1, callFrame: root, children: [] as number[], positionTicks: [] as object[] },
  ];
  const samples: number[] = [];
  for (const [ms, ...stack] of runs) {
    let key = '';
    for (const [functionName, url] of stack) {
      const parent = nodes[ids.get(key)! - 1]!;
      key += `/${functionName}`;
      if (ids.has(key)) continue;
      const id = nodes.length + 1;
      ids.set(key, id);
      parent.children.push(id);
      const callFrame = { functionName, url, lineNumber: 3, columnNumber: 5 };
      const positionTicks = line === undefined ? [] : [{ line, ticks: 1 }];
      nodes.push({ id, callFrame, children: [], positionTicks });
    }
    samples.push(...Array.from({ length: ms }, () => ids.get(key)!));
  }
  return {
    nodes: nodes as never,
    samples: [...samples, 1],
    timeDeltas: [0, ...samples.map(() => 1_000)],
  };
}

function advise(runs: readonly Run[], line?: number) {
  const work = noWork();
  addProfile(work, profileOf(runs, line));
  return adviceOf({ work, workers: 1, lost: [] });
}

/** The same stack several times, with an idle loop between. */
const again = (times: number, ms: number, ...stack: Frame[]): Run[] =>
  Array.from({ length: times }, (): Run[] => [
    [ms, ...stack],
    [9, IDLE],
  ]).flat();

const namesOf = ({ functions }: ReturnType<typeof advise>) => functions.map(({ name }) => name);

it('counts a sample for the innermost function of the app, with the libraries that it calls', () => {
  const advice = advise([
    [30, own('report'), own('compute'), ['loop', '/app/node_modules/lib/index.js']],
    [30, IDLE],
    [40, own('report'), own('compute')],
    [900, IDLE],
  ]);

  expect(advice).toMatchObject({
    workers: 1,
    profiledMs: 1_000,
    utilization: 0.07,
    longestMs: 40,
    nothing: null,
    functions: [{ name: 'compute', place: '/app/app.js:4:6', share: 0.07, longestMs: 40 }],
  });
});

it('names the package of code that blocks again and again without a function of the app', () => {
  const scoped: Frame = ['parse', '/app/node_modules/a/node_modules/@b/c/index.js'];

  expect(namesOf(advise(again(3, 50, scoped)))).toEqual(['@b/c']);
  expect(namesOf(advise(again(2, 50, scoped)))).toEqual([]);
});

it('ends a slice when another handler begins, and when the loop is idle', () => {
  const { longestMs } = advise([
    [15, own('report')],
    [15, own('list')],
    [15, own('report')],
    [10, IDLE],
    [15, own('report')],
    [900, IDLE],
  ]);
  expect(longestMs).toBe(15);
});

it('names a function that blocks for 20 ms more than once, or takes 5 % in calls that are not short', () => {
  const twice = (ms: number) => again(2, ms, own('report'));

  expect(namesOf(advise([...twice(20), [4_000, IDLE]]))).toEqual(['report']);
  expect(namesOf(advise([...twice(19), [4_000, IDLE]]))).toEqual([]);
  expect(namesOf(advise([...twice(6), [200, IDLE]]))).toEqual(['report']);
  expect(namesOf(advise(again(50, 4, own('list'))))).toEqual([]);
});

it('gives the p99 of the wait for the loop, with a function and without it', () => {
  // A request waits longer than t with the probability (100 - t + 50 - t) / 1000.
  const runs: Run[] = [
    [100, own('report')],
    [9, IDLE],
    [50, own('list')],
    [841, IDLE],
  ];
  const { waitP99Ms, waitP99WithoutMs, functions } = advise([...runs, ...runs]);

  expect(waitP99Ms).toBeCloseTo(90); // (100 - t) * 2 = 1 % of 2000
  expect(functions.map((each) => [each.name, each.waitP99WithoutMs])).toEqual([
    ['report', expect.closeTo(40)],
    ['list', expect.closeTo(90)],
  ]);
  expect(waitP99WithoutMs).toBe(0);
});

it('counts no more garbage for a function than its own time', () => {
  const collected = (ms: number): Run[] => [
    [ms, own('list')],
    [60, GARBAGE],
    [9, IDLE],
  ];
  const { functions } = advise([...collected(30), ...collected(30), [3_000, IDLE]]);

  expect(functions).toMatchObject([{ name: 'list', longestMs: 60 }]);
});

it('counts no gap between samples, in which the process had no CPU', () => {
  const profile = profileOf([
    [2, own('list')],
    [900, IDLE],
  ]);
  profile.timeDeltas[1] = 80_000;
  const work = noWork();
  addProfile(work, profile);

  expect(work.busyMs).toBe(5);
});

it.each<[kind: string, ...frames: Frame[]]>([
  ['files', ['readFileSync', 'node:fs'], ['open', '']],
  ['crypto', ['pbkdf2Sync', 'node:internal/crypto/pbkdf2'], ['run', '']],
  ['compression', ['gzipSync', 'node:zlib']],
  ['processes', ['execSync', 'node:child_process']],
  ['rows', ['hydrate', '/app/node_modules/typeorm/query/x.js']],
  ['regexp', ['RegExp: ^(a+)+$', '']],
  ['code', ['loop', '/app/node_modules/lib/index.js']],
])('knows %s by the frames', (kind, ...frames) => {
  expect(advise(again(2, 50, own('report'), ...frames)).functions).toMatchObject([{ kind }]);
});

it('knows JSON and regular expressions by the line that runs, unless it is a whole bundle', () => {
  const directory = mkdtempSync(join(tmpdir(), 'advise-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const file = join(directory, 'app.js');
  const bundle = `${'x();'.repeat(100)}JSON.parse(text)`;
  writeFileSync(file, ['', 'JSON.parse(text);', '/^(a+)+$/.test(text);', bundle].join('\n'));
  const kindAt = (line: number) => advise(again(2, 50, ['report', file]), line).functions[0]?.kind;

  expect([1, 2, 3, 4, 5].map(kindAt)).toEqual(['code', 'json', 'regexp', 'code', 'code']);
});

it('says why there is nothing to gain', () => {
  const program: Frame = ['(program)', ''];

  expect(advise([[900, IDLE]]).nothing).toMatch(/busy only 0\.0 % of the time: profile again/);
  const busy = advise([
    [100, program],
    [900, IDLE],
  ]);
  expect(linesOf(busy).at(-1)).toMatch(/^Nothing to gain: no function .* busy 10 %/);
});

/** Collects from two workers that are idle. */
async function collected(refuses: (slot: string) => boolean) {
  const asked: string[] = [];
  const client = clientOf({
    status: () => statusOf([{ slot: 0 }, { slot: 1 }, { slot: 1 }]),
    post: async (path) => {
      asked.push(path);
      if (refuses(path.split('/')[3]!)) throw new ToolError('the worker ended');
      const file = join(mkdtempSync(join(tmpdir(), 'advise-')), 'a.cpuprofile');
      onTestFinished(() => rmSync(join(file, '..'), { recursive: true }));
      writeFileSync(file, JSON.stringify(profileOf([[1_000, IDLE]])));
      return { file };
    },
  });
  return { ...(await collect(client, 25)), asked };
}

it('takes one profile of each worker, and reports a missing one', async () => {
  const { workers, lost, asked } = await collected((slot) => slot === '1');

  expect(asked).toEqual([0, 1].map((slot) => `/v1/workers/${slot}/cpu-profile?seconds=25`));
  expect({ workers, lost }).toEqual({ workers: 1, lost: ['worker=1: the worker ended'] });
});

it('fails with the reasons if no profile is complete', async () => {
  await expect(collected(() => true)).rejects.toThrow(
    'no worker could be profiled: worker=0: the worker ended; worker=1: the worker ended',
  );
});
