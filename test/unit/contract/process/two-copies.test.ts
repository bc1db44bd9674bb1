import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { explainDoubleClass } from '../../../../src/contract/process/two-copies.js';
import { temporaryDirectory } from '../../../support/temporary-directory.js';

const notFound = (name: string) =>
  `Nest could not find ${name} element (this provider does not exist in the current context)`;
const unresolved = (name: string) =>
  `Nest can't resolve dependencies of the Cats (?). Please make sure that the argument ${name} at index [0] is available in the CatsModule module.\n\nPotential solutions:`;

/** A package is required that has this class. */
function requirePackage(name: string, className: string, exports: unknown): void {
  const root = temporaryDirectory();
  const folder = join(root, 'node_modules', name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name, main: 'a.cjs', exports }));
  writeFileSync(join(folder, 'a.cjs'), `exports.${className} = class {};`);
  createRequire(join(root, 'main.cjs'))(name);
}

const BOTH = { '.': { import: { default: './a.mjs' }, require: { default: './a.cjs' } } };

describe('the explanation of a class that Nest does not find', () => {
  it.each([
    ['HttpAdapterHost', notFound],
    ['ModuleRef', unresolved],
    ['Reflector', unresolved],
  ])('is a second copy of Nest, for a class that every app has: %s', (name, message) => {
    const text = explainDoubleClass(message(name));
    expect(text).toContain(`one does not know ${name} of the other`);
    expect(text).toContain("external: ['nestjs-cluster', /^@nestjs[/]/]");
    expect(text).toContain(message(name).split('\n')[0]);
    expect(text).not.toContain('Potential solutions');
  });

  it.each([
    ['lone-logger', 'LoneLogger', notFound],
    ['@scope/lone-cats', 'LoneCats', unresolved],
  ])('is the second copy of %s, once the first is loaded', (library, name, message) => {
    expect(explainDoubleClass(message(name))).toBeUndefined();
    requirePackage(library, name, BOTH);
    expect(explainDoubleClass(message(name))).toContain(
      `${name} of ${library} may be there twice: ${library} has a copy for require() and another for import()`,
    );
  });

  it.each([
    ['a package with one copy', 'OneCopy', { '.': { default: './a.cjs' } }],
    ['a package without exports', 'NoExports', undefined],
  ])('is missing for a class of %s', (_what, name, exports) => {
    requirePackage(name.toLowerCase(), name, exports);
    expect(explainDoubleClass(notFound(name))).toBeUndefined();
  });

  it('is missing for another error', () => {
    expect(explainDoubleClass('ModuleRef is not a function')).toBeUndefined();
  });
});
