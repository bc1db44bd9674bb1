/** The classes that Nest provides in every app. */
const OF_NEST =
  /^(ApplicationConfig|ExternalContextCreator|HttpAdapterHost|LazyModuleLoader|ModuleRef|ModulesContainer|Reflector)$/;

/** Matches the name of the missing class in a message of Nest: a requested provider or an argument. */
const NOT_FOUND = /Nest could not find (\w+) element|that the argument "?(\w+)"? at index/;

/**
 * Explains a missing class of Nest. Nest looks a class up by its identity, but reports its name. If
 * the class comes from a second copy of Nest, Nest says that it is missing.
 *
 * @returns the cause and the first line of the message; `undefined` if nothing hints at two copies.
 */
export function explainDoubleClass(message: string): string | undefined {
  const [, element, argument] = NOT_FOUND.exec(message) ?? [];
  const name = element ?? argument;
  if (name === undefined || !OF_NEST.test(name)) return undefined;
  const [firstLine] = message.split('\n');
  return (
    `two copies of Nest are loaded, and one does not know ${name} of the other; where a bundler makes the app, leave @nestjs/* out of the bundle together with nestjs-cluster (external: ['nestjs-cluster', /^@nestjs[/]/]), or put both into it; ` +
    `npm ls @nestjs/core says which copies are installed (${firstLine})`
  );
}
