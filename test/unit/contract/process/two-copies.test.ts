import { describe, expect, it } from 'vitest';
import { explainDoubleClass } from '../../../../src/contract/process/own-file.js';

const notFound = (name: string) =>
  `Nest could not find ${name} element (this provider does not exist in the current context)`;
const unresolved = (name: string) =>
  `Nest can't resolve dependencies of the Cats (?). Please make sure that the argument ${name} at index [0] is available in the CatsModule module.\n\nPotential solutions:`;

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

  it('is missing for another class', () => {
    expect(explainDoubleClass(notFound('CatsService'))).toBeUndefined();
  });

  it('is missing for another error', () => {
    expect(explainDoubleClass('ModuleRef is not a function')).toBeUndefined();
  });
});
