import { expect, it } from 'vitest';
import { definitionsOf } from '../../../src/offload/index.js';
import { beginTrial } from '../../../src/offload/trial.js';

const THREADS = { threads: true };

function classes() {
  class Reports {
    build() {
      return 'built';
    }
  }
  class Monthly extends Reports {}
  return { Reports, Monthly };
}

const members = (...types: readonly object[]) => types.map((type) => ({ type }) as never);

it('gives the method of a class @CpuBound(), in the file that declares the class', () => {
  const { Reports } = classes();

  expect(beginTrial('Reports.build', members(Reports, Reports), THREADS)).toEqual([]);

  const [definition] = definitionsOf(Reports.prototype);
  expect(definition).toMatchObject({ method: 'build', site: { place: 'trial' } });
  expect(definition!.site!.file).toMatch(/trial\.test\.ts/);
  expect(new Reports().build()).toBe('built');
});

it.each([
  ['Reports.rebuild', 'no controller or provider declares Reports.rebuild()'],
  ['Monthly.build', 'no controller or provider declares Monthly.build()'],
])('refuses %s, which no class declares', (name, reason) => {
  const { Reports, Monthly } = classes();
  expect(beginTrial(name, members(Reports, Monthly), THREADS)).toEqual([reason]);
});

it('refuses a name that two classes have, and a process without threads', () => {
  const [one, other] = [classes().Reports, classes().Reports];
  const both = members(one, other);
  expect(beginTrial('Reports.build', both, THREADS)).toEqual([
    'the app has two classes with a method Reports.build()',
  ]);
  expect(beginTrial('Reports.build', both, { threads: false })).toEqual([
    'Reports.build() cannot be tried without threads',
  ]);
  expect(definitionsOf(one.prototype)).toEqual([]);
});
