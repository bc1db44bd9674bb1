import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isOfMissingPackage, PACKAGES_BESIDE } from '../support/packages-beside.mjs';

const ROOT = join(import.meta.dirname, '../..');
const SOURCE = join(ROOT, 'src');

/** The rooms that each room imports. No other edge is allowed: a new one is a decision, made here. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  contract: [],
  offload: ['contract'],
  worker: ['contract'],
  observe: ['contract', 'offload', 'worker'],
  control: ['contract', 'observe'],
  extension: ['contract', 'offload'],
  decide: ['contract'],
  primary: ['contract', 'decide', 'extension'],
  bootstrap: ['contract', 'control', 'decide', 'observe', 'primary', 'worker'],
  module: ['bootstrap', 'contract', 'observe', 'offload'],
  'index.ts': ['bootstrap', 'contract', 'module', 'observe', 'offload'],
  schedule: ['contract', 'observe', 'worker'],
  testing: ['contract', 'module', 'observe', 'offload'],
  cli: ['contract', 'control'],
};

/** Rooms that load nothing of Nest and no prom-client: a primary stays small, and a worker is the app's. */
const WITHOUT_NEST = ['contract', 'decide', 'primary', 'worker', 'bootstrap', 'control'];

/** Lines of the core, of rooms of it, and of the whole source, at most. These limits only fall. */
const CORE = [
  'index.ts',
  'module',
  'bootstrap',
  'contract',
  'decide',
  'primary',
  'worker',
  'observe',
  'offload',
];
const MOST_LINES = {
  core: 17_862,
  decide: 2_825,
  observe: 1_569,
  offload: 2_042,
  all: 19_501,
};

/** Files of the whole source, at most. This limit only falls. */
const MOST_FILES = 157;

/** Lines of the `src` of each package in `packages/`, at most. These limits only fall. */
const MOST_LINES_BESIDE: Readonly<Record<string, number>> = {
  shared: 2_968,
  'socket.io': 521,
  bullmq: 662,
  tools: 2_870,
};

/** The entries of the core that a package may import: the public entries, and the entry for packages. */
const OF_THE_CORE = /^nestjs-cluster(?:\/(?:bootstrap|extension|schedule|testing))?$/;

/** Lines that each entry loads at once, at most. These limits only fall. */
const MOST_LOADED: Readonly<Record<string, number>> = {
  '.': 5_432,
  './bootstrap': 2_015,
  './schedule': 3_533,
  './testing': 3_964,
  './extension': 78,
};

const texts = new Map(
  readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.c?ts$/.test(file))
    .map((file) => [file, readFileSync(join(SOURCE, file), 'utf8')]),
);
const files = [...texts.keys()];
const roomOf = (file: string): string => file.split('/')[0]!;
const linesOf = (among: readonly string[]): number =>
  among.reduce((lines, file) => lines + texts.get(file)!.split('\n').length - 1, 0);

/** A file's imports within `src`, types and late ones too, or the ones alone that load with it. */
function importsOf(file: string, loaded = false): readonly string[] {
  const pattern = /^(?:import|export)\b( type\b)?[^;']*?'(\.[^']+)'|\bimport\('(\.[^']+)'\)/gm;
  return [...texts.get(file)!.matchAll(pattern)]
    .filter(([, type, fixed]) => !loaded || (type === undefined && fixed !== undefined))
    .map(([, , fixed, late]) => normalize(join(dirname(file), (fixed ?? late)!)))
    .map((path) => path.replace(/js$/, 'ts'))
    .filter((path) => texts.has(path));
}

it('has no import between rooms that is not allowed', () => {
  const edges = files.flatMap((file) => importsOf(file).map((target) => [file, target] as const));
  const crossing = edges.filter(([from, to]) => roomOf(from) !== roomOf(to));
  const isAllowed = ([from, to]: readonly [string, string]) =>
    ALLOWED[roomOf(from)]!.includes(roomOf(to));

  expect(crossing.length).toBeGreaterThan(300);
  expect(crossing.filter((edge) => !isAllowed(edge)).map((edge) => edge.join(' → '))).toEqual([]);
});

it('has no edge in the list that nothing uses', () => {
  const used = new Set(
    files.flatMap((file) => importsOf(file).map((to) => `${roomOf(file)} → ${roomOf(to)}`)),
  );
  const listed = Object.entries(ALLOWED).flatMap(([from, to]) =>
    to.map((each) => `${from} → ${each}`),
  );

  expect(listed.filter((edge) => !used.has(edge))).toEqual([]);
});

it('loads nothing of Nest in rooms that do without it', () => {
  const loading = files.filter((file) =>
    /^(?:import|export) (?!type\b)[^;']*?'(?:@nestjs\/|prom-client|rxjs|reflect-metadata)/m.test(
      texts.get(file)!,
    ),
  );
  expect(loading.length).toBeGreaterThan(15);
  expect(loading.filter((file) => WITHOUT_NEST.includes(roomOf(file)))).toEqual([]);
});

it('has the files that CONTRIBUTING.md names', () => {
  const map = readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8');
  const named = [...map.matchAll(/`([\w./-]+\.ts)`/g)].map(([, path]) => path!);
  const isThere = (path: string): boolean =>
    isOfMissingPackage(path) ||
    existsSync(join(ROOT, path)) ||
    files.some((file) => `/${file}`.endsWith(`/${path}`));

  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((path) => !isThere(path))).toEqual([]);
});

it('has at most 15 files side by side', () => {
  const counts = new Map<string, number>();
  for (const file of files) counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1);

  expect([...counts].filter(([, count]) => count > 15)).toEqual([]);
});

it('has no file of more than 400 lines', () => {
  expect(files.filter((file) => linesOf([file]) > 400)).toEqual([]);
});

it('stays within its size', () => {
  const linesIn = (rooms: readonly string[]) =>
    linesOf(files.filter((file) => rooms.includes(roomOf(file))));
  const lines = {
    all: linesOf(files),
    core: linesIn(CORE),
    decide: linesIn(['decide']),
    observe: linesIn(['observe']),
    offload: linesIn(['offload']),
  };

  for (const [name, most] of Object.entries(MOST_LINES)) {
    expect([name, lines[name as keyof typeof lines] <= most]).toEqual([name, true]);
  }
  expect(files.length).toBeLessThanOrEqual(MOST_FILES);
});

const BESIDE = join(ROOT, 'packages');

/** The sources of a package in `packages/`, by their paths. */
function sourcesOf(name: string): ReadonlyMap<string, string> {
  const source = join(BESIDE, name, 'src');
  const paths = readdirSync(source, { recursive: true, encoding: 'utf8' });
  const kept = paths.filter((file) => /\.c?ts$/.test(file));
  return new Map(kept.map((file) => [file, readFileSync(join(source, file), 'utf8')]));
}

/** The specifiers of a text's imports, types and late ones too. */
function specifiersOf(text: string): readonly string[] {
  const pattern = /^(?:import|export)\b[^;'=]*?'([^']+)'|\bimport\('([^']+)'\)/gm;
  return [...text.matchAll(pattern)].map(([, fixed, late]) => (fixed ?? late)!);
}

it('imports nothing of the packages beside it', () => {
  const importing = files.filter((file) =>
    specifiersOf(texts.get(file)!).some((each) => /@nestjs-cluster\/|packages\//.test(each)),
  );

  expect(importing).toEqual([]);
});

describe.each(PACKAGES_BESIDE)('the package %s', (name) => {
  const sources = sourcesOf(name);

  it('imports of the core only public entries and /extension', () => {
    const isOutside = (file: string, specifier: string) =>
      specifier.startsWith('.')
        ? normalize(join(dirname(file), specifier)).startsWith('..')
        : specifier.startsWith('nestjs-cluster') && !OF_THE_CORE.test(specifier);
    const all = [...sources].flatMap(([file, text]) =>
      specifiersOf(text).map((specifier) => ({ file, specifier })),
    );

    expect(all.length).toBeGreaterThan(5);
    expect(all.filter(({ file, specifier }) => isOutside(file, specifier))).toEqual([]);
  });

  it('stays within its size', () => {
    const lengths = [...sources.values()].map((text) => text.split('\n').length - 1);

    expect(lengths.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(
      MOST_LINES_BESIDE[name]!,
    );
    expect(lengths.filter((length) => length > 400)).toEqual([]);
  });
});

it.each(Object.entries(MOST_LOADED))('%s loads at most %i lines', (entry, most) => {
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    exports: Record<string, { default: { default: string } }>;
  };
  const start = normalize(exports[entry]!.default.default).replace(/^dist\/(.*)js$/, '$1ts');
  const loaded = new Set<string>();
  const load = (file: string): void => {
    if (loaded.has(file)) return;
    loaded.add(file);
    importsOf(file, true).forEach(load);
  };
  load(start);

  expect(basename(start)).toMatch(/\.ts$/);
  expect(linesOf([...loaded])).toBeLessThanOrEqual(most);
});
