import { expect, it } from 'vitest';
import { explainDoubleClass } from '../../../../src/contract/process/own-file.js';

const notFound = (name: string) =>
  `Nest could not find ${name} element (this provider does not exist in the current context)`;
const unresolved = (name: string) =>
  `Nest can't resolve dependencies of the Cats (?). Please make sure that the argument ${name} at index [0] is available in the CatsModule module.\n\nPotential solutions:`;

it("explains a missing class of Nest by a second copy, and no app's own class", () => {
  for (const [name, message] of [
    ['HttpAdapterHost', notFound],
    ['Reflector', unresolved],
  ] as const) {
    const text = explainDoubleClass(message(name));
    expect(text).toContain(`one does not know ${name} of the other`);
    expect(text).toContain(`(${message(name).split('\n')[0]})`);
  }
  expect(explainDoubleClass(notFound('CatsService'))).toBeUndefined();
  expect(explainDoubleClass('ModuleRef is not a function')).toBeUndefined();
});
