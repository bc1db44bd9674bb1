import 'reflect-metadata';
import { applyDecorators } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { runInThisContext } from 'node:vm';
import { callSite } from '../../../../src/offload/task/call-site.js';

/** Code as if it stood in a file, compiled: `source` is an expression. */
function inFile<T>(filename: string, source: string): T {
  return runInThisContext(`(${source})`, { filename }) as T;
}

type Decorator = (...args: unknown[]) => void;
type Applied = (decorators: Decorator[]) => void;

/** The helper that tsc puts at the beginning of a file. */
const TSC_HELPER = `function __decorate(decorators, target, key, desc) {
  if (typeof Reflect === 'object' && typeof Reflect.decorate === 'function') Reflect.decorate(decorators, target, key, desc);
  else for (const decorator of decorators.reverse()) decorator(target, key, desc);
}`;

/** A file with a class whose method has `decorators`, as tsc emits it. */
const classIn = (filename: string) =>
  inFile<Applied>(
    filename,
    `(decorators) => { ${TSC_HELPER} class Cats { count() {} }
    __decorate(decorators, Cats.prototype, 'count', Object.getOwnPropertyDescriptor(Cats.prototype, 'count')); }`,
  );

/** The same where the helper is in a library. */
const classWithHelper = (filename: string, helper: string, library: string) => {
  const decorate = inFile<Applied>(
    library,
    `function ${helper}(decorators, target, key, desc) { for (const decorator of decorators) decorator(target, key, desc); }`,
  );
  const apply = inFile<(decorate: Applied, decorators: Decorator[]) => void>(
    filename,
    `(decorate, decorators) => { class Cats { count() {} }
    decorate(decorators, Cats.prototype, 'count', Object.getOwnPropertyDescriptor(Cats.prototype, 'count')); }`,
  );
  return (decorators: Decorator[]) => apply(decorate, decorators);
};

/** A decorator that asks where it is applied. */
function asking() {
  const files: (string | undefined)[] = [];
  return { files, decorator: () => void files.push(callSite()?.file) };
}

describe('the file of a class', () => {
  it.each([
    ['tsc, with its helper in the file', classIn('/app/cats.js')],
    [
      'tsc with importHelpers',
      classWithHelper('/app/cats.js', '__decorate', '/app/node_modules/tslib/tslib.js'),
    ],
    [
      'tslib as a module',
      classWithHelper('/app/cats.js', '__decorate', 'file:///app/node_modules/tslib/tslib.es6.mjs'),
    ],
    [
      'SWC with its helpers',
      classWithHelper(
        '/app/cats.js',
        '_ts_decorate',
        '/app/node_modules/@swc/helpers/cjs/_ts_decorate.cjs',
      ),
    ],
    [
      'SWC with the helper in the file',
      classWithHelper('/app/cats.js', '_ts_decorate', '/app/cats.js'),
    ],
    ['esbuild', classWithHelper('/app/cats.js', '__decorateClass', '/app/cats.js')],
    ['a module, named by its address', classIn('file:///app/cats.js')],
    ['a module that was imported anew', classIn('file:///app/cats.js?t=5#x')],
  ])('is known where it was compiled by %s', (_, apply) => {
    const { files, decorator } = asking();
    apply([decorator]);
    expect(files).toEqual(['/app/cats.js']);
  });

  it('is known where a runner keeps the helper in no file', () => {
    const { files, decorator } = asking();
    classWithHelper('/app/cats.js', '_decorate', 'virtual:helpers/decorate')([decorator]);
    expect(files).toEqual(['/app/cats.js']);
  });

  it('has its spaces and signs', () => {
    const { files, decorator } = asking();
    classIn('file:///my%20app/c%C3%A4ts.js')([decorator]);
    expect(files).toEqual(['/my app/cäts.js']);
  });

  it('is that of the class, not that of a decorator of which this one is a part', () => {
    const { files, decorator } = asking();
    const compose = inFile<(apply: typeof applyDecorators, part: Decorator) => Decorator>(
      '/app/decorators/heavy.js',
      '(applyDecorators, part) => applyDecorators(part)',
    );
    classIn('/app/cats.js')([compose(applyDecorators as never, decorator)]);
    classWithHelper(
      '/app/dogs.js',
      '__decorate',
      '/app/node_modules/tslib/tslib.js',
    )([compose(applyDecorators as never, decorator)]);
    expect(files).toEqual(['/app/cats.js', '/app/dogs.js']);
  });

  it('is that of the class also where the decorator that it is a part of is of a package', () => {
    const { files, decorator } = asking();
    const wrap = inFile<(part: Decorator) => Decorator>(
      '/app/node_modules/company-decorators/index.js',
      '(part) => (...args) => part(...args)',
    );
    classIn('/app/cats.js')([wrap(wrap(decorator))]);
    expect(files).toEqual(['/app/cats.js']);
  });

  it('is the inner one where a class is declared while another is decorated', () => {
    const { files, decorator } = asking();
    const inner = classIn('/app/inner.js');
    classIn('/app/outer.js')([() => inner([decorator])]);
    expect(files).toEqual(['/app/inner.js']);
  });

  it.each(['__decorate', 'e'])('has a place for each class that %s decorates', (helper) => {
    type Places = readonly ({ readonly place: string } | undefined)[];
    const declare = inFile<(decorator: typeof callSite) => Places>(
      '/app/bundle.js',
      `(decorator) => { function ${helper}(composed) { return composed(); }
      const composed = () => decorator();
      const first = () => ${helper}(composed);
      const second = () => ${helper}(composed);
      return [first(), second(), first()]; }`,
    );

    const [first, second, again] = declare(callSite).map((site) => site?.place);

    expect(first).toMatch(/^\/app\/bundle\.js:\d+:\d+/);
    expect(second).not.toBe(first);
    expect(again).toBe(first);
  });

  it('is not known of code that is in no file', () => {
    const { files, decorator } = asking();
    classIn('evalmachine.<anonymous>')([decorator]);
    expect(files).toEqual([undefined]);
    const call = inFile<(f: () => unknown) => unknown>(
      'webpack-internal:///./cats.ts',
      '(f) => f()',
    );
    expect(call(callSite)).toBeUndefined();
  });
});

describe('the file that calls', () => {
  it.each([
    ['/app/main.js', '/app/main.js'],
    ['file:///app/main.mjs', '/app/main.mjs'],
    ['C:\\app\\main.js', 'C:\\app\\main.js'],
  ])('is known where nothing is decorated: %s', (filename, expected) => {
    expect(inFile<(f: () => unknown) => unknown>(filename, '(f) => f()')(callSite)).toMatchObject({
      file: expected,
    });
  });

  it('is this one here', () => {
    expect(callSite()?.file).toBe(import.meta.filename);
  });

  it.each(['reflect-metadata/Reflect.js', '@nestjs/common/decorators/core/apply-decorators.js'])(
    'is not %s, which may stand in between',
    (library) => {
      const between = inFile<(f: () => unknown) => unknown>(
        `/app/node_modules/${library}`,
        '(f) => f()',
      );
      const call = inFile<(g: typeof between, f: () => unknown) => unknown>(
        '/app/main.js',
        '(g, f) => g(f)',
      );
      expect(call(between, callSite)).toMatchObject({ file: '/app/main.js' });
    },
  );
});

describe('whoever makes something else of stacks', () => {
  const before = { ...Object.getOwnPropertyDescriptors(Error) };
  afterEach(() => {
    Reflect.deleteProperty(Error, 'prepareStackTrace');
    Object.defineProperties(Error, before);
  });

  it('is not in the way, and keeps it', () => {
    const own = () => 'mapped';
    Error.prepareStackTrace = own;
    Error.stackTraceLimit = 0;
    expect(callSite()?.file).toBe(import.meta.filename);
    expect(Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace')?.value).toBe(own);
    expect(Error.stackTraceLimit).toBe(0);
  });

  it('is not made up where there was nobody', () => {
    Reflect.deleteProperty(Error, 'prepareStackTrace');
    callSite();
    expect(Object.hasOwn(Error, 'prepareStackTrace')).toBe(false);
  });
});
