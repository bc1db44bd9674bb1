import 'reflect-metadata';
import { applyDecorators } from '@nestjs/common';
import { runInThisContext } from 'node:vm';
import { expect, it } from 'vitest';
import { callerFile } from '../../../../src/offload/task/caller-file.js';

/** Evaluates an expression as if it stood in a file. */
function inFile<T>(filename: string, source: string): T {
  return runInThisContext(`(${source})`, { filename }) as T;
}

type Decorator = (...args: unknown[]) => void;
type Apply = (decorators: Decorator[]) => void;

/** A file with a class whose method has decorators. The compiler's helper is in `library`. */
function compiled(file: string, helper = '__decorate', library = file): Apply {
  const decorate = inFile<Apply>(
    library,
    `function ${helper}(decorators, ...on) {
      if (typeof Reflect.decorate === 'function') Reflect.decorate(decorators, ...on);
      else for (const decorator of decorators) decorator(...on);
    }`,
  );
  const apply = inFile<(decorate: Apply, decorators: Decorator[]) => void>(
    file,
    `(decorate, decorators) => { class Cats { count() {} }
    decorate(decorators, Cats.prototype, 'count', Object.getOwnPropertyDescriptor(Cats.prototype, 'count')); }`,
  );
  return (decorators) => apply(decorate, decorators);
}

/** The files that a decorator finds when it is applied by these. */
function found(use: (decorator: Decorator) => void): (string | undefined)[] {
  const files: (string | undefined)[] = [];
  use(() => void files.push(callerFile()));
  return files;
}

it.each([
  ['tsc', compiled('/app/cats.js')],
  ['tsc and tslib', compiled('/app/cats.js', '__decorate', '/app/node_modules/tslib/tslib.js')],
  [
    'SWC and its helpers',
    compiled('/app/cats.js', '_ts_decorate', '/app/node_modules/@swc/helpers/_ts_decorate.cjs'),
  ],
  ['esbuild', compiled('/app/cats.js', '__decorateClass')],
  ['a runner with helpers in no file', compiled('/app/cats.js', '_decorate', 'virtual:helpers')],
  ['a module that was imported again', compiled('file:///app/c%61ts.js?t=5#x')],
])('the file of a class is found: by %s', (_, apply) => {
  expect(found((decorator) => apply([decorator]))).toEqual(['/app/cats.js']);
});

it('the file is that of the class, not that of a decorator which this one is a part of', () => {
  const compose = inFile<(apply: typeof applyDecorators, part: Decorator) => Decorator>(
    '/app/decorators/heavy.js',
    '(applyDecorators, part) => applyDecorators(part)',
  );
  const wrap = inFile<(part: Decorator) => Decorator>(
    '/app/node_modules/company-decorators/index.js',
    '(part) => (...args) => part(...args)',
  );
  const dogs = compiled('/app/dogs.js', '__decorate', '/app/node_modules/tslib/tslib.js');
  expect(
    found((decorator) => {
      compiled('/app/cats.js')([compose(applyDecorators as never, decorator)]);
      dogs([compose(applyDecorators as never, decorator)]);
      compiled('/app/lions.js')([wrap(wrap(decorator))]);
    }),
  ).toEqual(['/app/cats.js', '/app/dogs.js', '/app/lions.js']);
});

it.each([
  ['/app/main.js', '/app/main.js'],
  ['file:///my%20app/m%C3%A4in.mjs', '/my app/mäin.mjs'],
  ['C:\\app\\main.js', 'C:\\app\\main.js'],
  ['evalmachine.<anonymous>', undefined],
])('without a decorator, the file is that of the caller: %s', (filename, file) => {
  expect(inFile<(call: () => unknown) => unknown>(filename, '(f) => f()')(callerFile)).toBe(file);
});

it.each(['reflect-metadata/Reflect.js', '@nestjs/common/decorators/core/apply-decorators.js'])(
  'the file is not %s, which may be in between',
  (library) => {
    const path = `/app/node_modules/${library}`;
    const between = inFile<(call: () => unknown) => unknown>(path, '(f) => f()');
    const call = inFile<(g: typeof between, f: () => unknown) => unknown>(
      '/app/main.js',
      '(g, f) => g(f)',
    );
    expect(call(between, callerFile)).toBe('/app/main.js');
  },
);

it.each([{ prepareStackTrace: () => 'mapped', stackTraceLimit: 0 }, {}])(
  'settings of stacks make no difference, and stay as they are: %j',
  (settings) => {
    const before = Object.getOwnPropertyDescriptors(Error);
    Reflect.deleteProperty(Error, 'prepareStackTrace');
    try {
      Object.assign(Error, settings);
      const given = Object.getOwnPropertyDescriptors(Error);
      expect(callerFile()).toBe(import.meta.filename);
      expect(Object.getOwnPropertyDescriptors(Error)).toEqual(given);
    } finally {
      Reflect.deleteProperty(Error, 'prepareStackTrace');
      Object.defineProperties(Error, before);
    }
  },
);
