import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Load, Recording } from '../../../../src/tools/boot/app/recording.js';
import { attribute, moduleOf } from '../../../../src/tools/boot/attribution.js';
import { type BootReport, fastestOf, pageOf, reportOf } from '../../../../src/tools/boot/report.js';
import type { CallFrame } from '../../../../src/tools/profiles/call-tree.js';

const frame = (functionName: string, url = ''): CallFrame => ({
  functionName,
  url,
  lineNumber: 0,
  columnNumber: 0,
});

/** When the process started, on the clock of the profile, and when the profile began after that. */
const ORIGIN_US = 1e9;
const BEGAN_MS = 40;

/**
 * The recording of calls, each with its duration. A call is the names of functions from the root to
 * the innermost, each with the URL that it has in `urls`.
 */
function recorded(
  urls: Readonly<Record<string, string>>,
  calls: readonly (readonly [stack: string, ms: number])[],
  loads: readonly Load[] = [],
): Pick<Recording, 'profile' | 'loads' | 'originUs'> {
  const nodes = [{ id: 0, callFrame: frame('(root)'), children: [] as number[] }];
  const samples = calls.map(([stack]) => {
    let node = nodes[0]!;
    for (const name of stack.split(' > ')) {
      const next = {
        id: nodes.length,
        callFrame: frame(name, new Map(Object.entries(urls)).get(name)),
        children: [],
      };
      node.children.push(next.id);
      nodes.push(next);
      node = next;
    }
    return node.id;
  });
  return {
    originUs: ORIGIN_US,
    loads,
    profile: {
      nodes,
      startTime: ORIGIN_US + BEGAN_MS * 1_000,
      samples: [...samples, samples.at(-1)!],
      timeDeltas: [0, ...calls.map(([, ms]) => ms * 1_000)],
    },
  };
}

const URLS = {
  main: 'file:///app/dist/main.js',
  service: 'file:///app/dist/cats.service.js',
  decorate: 'file:///app/node_modules/reflect-metadata/Reflect.js',
  inject: 'file:///app/node_modules/.pnpm/@nestjs+core@12/node_modules/@nestjs/core/injector.js',
  readFileSync: 'node:fs',
  require: 'node:internal/modules/cjs/loader',
  compile: 'node:internal/modules/esm/translators',
  runMicrotasks: 'node:internal/process/task_queues',
  load: 'file:///app/node_modules/nestjs-cluster/dist/programs/boot-recorder.cjs',
  clock: 'file:///app/node_modules/nestjs-cluster/dist/programs/boot-examiner.js',
};

const selfTimes = (...args: Parameters<typeof recorded>) =>
  Object.fromEntries(
    [...attribute(recorded(...args), '/app')].map(([name, { selfMs }]) => [name, selfMs]),
  );

describe('the attribution of a start', () => {
  it('gives the time to the innermost file, by its package or its path', () => {
    const times = attribute(
      recorded(URLS, [
        ['main', 5],
        ['main > service', 7],
        ['main > service > decorate > stringify', 30],
        ['main > service > readFileSync', 2],
        ['inject > service', 11],
        ['inject', 3],
      ]),
      '/app',
    );

    expect(Object.fromEntries(times)).toEqual({
      'dist/main.js': { selfMs: 5, totalMs: 44 },
      'dist/cats.service.js': { selfMs: 20, totalMs: 50 },
      'reflect-metadata': { selfMs: 30, totalMs: 30 },
      '@nestjs/core': { selfMs: 3, totalMs: 14 },
    });
  });

  it('counts a function that calls itself once', () => {
    const { '@nestjs/core': time } = Object.fromEntries(
      attribute(recorded(URLS, [['inject > service > inject', 4]]), '/app'),
    );

    expect(time).toEqual({ selfMs: 4, totalMs: 4 });
  });

  it('leaves out what records the start', () => {
    expect(
      selfTimes(URLS, [
        ['main > load > service', 3],
        ['main > clock', 2],
      ]),
    ).toEqual({
      'dist/main.js': 2,
      'dist/cats.service.js': 3,
    });
  });

  it('gives the time in which Node loads a CommonJS file to this file', () => {
    const loads: Load[] = [
      [41, '/app/node_modules/big/index.js'],
      [60, '/app/node_modules/small/index.js'],
      [70, null],
      [90, null],
    ];

    expect(
      selfTimes(
        URLS,
        [
          ['main > require', 1], // looks for the file
          ['main > require > readFileSync', 19],
          ['main > require > compileFunction', 10],
          ['main > require > decorate', 15],
          ['main > require > compileFunction', 5],
          ['main', 8],
        ],
        loads,
      ),
    ).toEqual({ 'dist/main.js': 9, 'reflect-metadata': 15, big: 24, small: 10 });
  });

  it('names the time that belongs to no file', () => {
    expect(
      selfTimes(URLS, [
        ['(idle)', 100],
        ['(garbage collector)', 6],
        ['(program)', 4],
        ['runMicrotasks', 2],
        ['constructor', 1],
        ['runMicrotasks > compile', 50],
        ['main > compile > readFileSync', 9],
        ['require', 2],
      ]),
    ).toEqual({
      '(waiting)': 100,
      '(garbage collection)': 6,
      '(Node itself)': 9,
      '(Node loads ES modules)': 59,
      'dist/main.js': 0,
    });
  });

  it('names this package also where it is linked', () => {
    const own = join(import.meta.dirname, '../../../../src/index.ts');

    expect(moduleOf(own, '/app')).toBe('nestjs-cluster');
    expect(moduleOf('/app/node_modules/a/node_modules/@b/c/index.js', '/app')).toBe('@b/c');
  });
});

const PHASES = { node: 30, imports: 500, container: 80, hooks: 120.25, setup: 20, listen: 9.5 };

const RECORDING: Recording = {
  ...recorded(
    { own: `file://${import.meta.filename}`, gone: 'file:///gone/node_modules/gone/index.js' },
    [
      ['gone', 40],
      ['own', 90],
    ],
  ),
  phases: PHASES,
  hooks: [
    { class: 'Quick', module: 'AppModule', hook: 'onModuleInit', ms: 0.9 },
    { class: 'Slow', module: 'AppModule', hook: 'onModuleInit', ms: 3 },
    { class: 'Slowest', module: 'DbModule', hook: 'onApplicationBootstrap', ms: 117 },
  ],
  // One file by its path and its URL.
  scripts: [
    import.meta.filename,
    `file://${import.meta.filename}`,
    'node:fs',
    '',
    'file:///gone/x.js',
  ],
};

describe('the report on a start', () => {
  const report = reportOf(join(process.cwd(), 'dist/main.js'), RECORDING, 900);

  it('has the slowest first, and the files with their sizes', () => {
    expect(report).toMatchObject({ main: 'dist/main.js', totalMs: 759.75, files: 2 });
    expect(report.modules.map(({ name, files }) => [name, files])).toEqual([
      [expect.stringMatching(/boot-report\.test\.ts$/), 1],
      ['gone', 0],
    ]);
    expect(report.bytes).toBe(report.modules[0]!.bytes);
    expect(report.bytes).toBeGreaterThan(1_000);
    expect(report.hooks.map((hook) => hook.class)).toEqual(['Slowest', 'Slow']);
    expect(report.compileCache).toEqual({ withMs: 759.75, withoutMs: 900 });
  });

  it('is about the fastest start', () => {
    const [slow, fast] = [25, 5].map((listen) => ({ phases: { ...PHASES, listen } }));

    expect(fastestOf([slow!, fast!, RECORDING])).toBe(fast);
    expect(fastestOf([])).toBeUndefined();
  });

  const page = (over: Partial<BootReport>) => {
    const modules = [
      { name: '@nestjs/core', selfMs: 812.4, totalMs: 900, files: 12, bytes: 34_400 },
      { name: '(waiting)', selfMs: 4.25, totalMs: 4.25, files: 0, bytes: 0 },
    ];
    return pageOf({ ...report, node: 'v22.8.0', bytes: 5_120_000, modules, ...over });
  };

  it('is a page with a table of each', () => {
    expect(page({}))
      .toBe(`dist/main.js was ready after 760 ms, with Node v22.8.0 and a warm compile cache

     30  Node's own start
    500  imports, until NestFactory is called
     80  Nest's container, with all providers
    120  onModuleInit and onApplicationBootstrap
     20  middleware, routes and the rest of createApp()
    9.5  listen

self ms  with all it calls  files  kB  package or file
    812                900     12  34  @nestjs/core
    4.3                4.3             (waiting)

    117  Slowest.onApplicationBootstrap() (DbModule)
    3.0  Slow.onModuleInit() (AppModule)

2 files with 5.1 MB were loaded.
The compile cache saves 140 ms: without it, the app was ready after 900 ms.
`);
  });

  it('says so if there is no compile cache, no slow hook, or no Nest', () => {
    const text = page({ compileCache: null, hooks: [], phases: { ...PHASES, container: 0 } });

    expect(text).toMatch(
      /^dist\/main\.js was ready after 760 ms, with Node v22\.8\.0\nNest is in a bundle/,
    );
    expect(text).toContain('(waiting)\n\n2 files');
    expect(text).toMatch(/There was no compile cache: Node has one since 22\.8, .*\n$/);
  });

  it('says that a cache saved nothing if the start with it was slower', () => {
    expect(page({ compileCache: { withMs: 100, withoutMs: 90 } })).toContain(
      'cache saved nothing: without it, ',
    );
  });
});
