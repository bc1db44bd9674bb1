import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

/** The classes that Nest provides in every app. */
const OF_NEST =
  /^(ApplicationConfig|ExternalContextCreator|HttpAdapterHost|LazyModuleLoader|ModuleRef|ModulesContainer|Reflector)$/;

/** Matches the name of the missing class in a message of Nest: a requested provider or an argument. */
const NOT_FOUND = /Nest could not find (\w+) element|that the argument "?(\w+)"? at index/;

const PACKAGE = /^(.*[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+))[\\/]/;

/**
 * Explains a missing class that is loaded twice. Nest looks a class up by its identity, but reports
 * its name. If a class comes from a second copy of its package, Nest says that it is missing.
 *
 * @returns the cause and the first line of the message; `undefined` if nothing hints at two copies.
 */
export function explainDoubleClass(message: string): string | undefined {
  const [, element, argument] = NOT_FOUND.exec(message) ?? [];
  const name = element ?? argument;
  if (name === undefined) return undefined;
  const [firstLine] = message.split('\n');
  if (OF_NEST.test(name)) {
    return (
      `two copies of Nest are loaded, and one does not know ${name} of the other; where a bundler makes the app, leave @nestjs/* out of the bundle together with nestjs-cluster (external: ['nestjs-cluster', /^@nestjs[/]/]), or put both into it; ` +
      `npm ls @nestjs/core says which copies are installed (${firstLine})`
    );
  }
  const library = doublePackageOf(name);
  if (library === undefined) return undefined;
  return (
    `${name} of ${library} may be there twice: ${library} has a copy for require() and another for import(), and await import('${library}') in a CommonJS file loads the other; ` +
    `import ${library} at the top of a file app.ts instead, and load that by bootstrap(() => import('./app.js')) (${firstLine})`
  );
}

/** The package that exports this class twice (CommonJS and ES module), if its CommonJS copy is loaded. */
function doublePackageOf(name: string): string | undefined {
  const { cache } = createRequire(process.execPath); // every `require` has the same cache
  for (const [file, module] of Object.entries(cache)) {
    const [, folder, library] = PACKAGE.exec(file) ?? [];
    if (folder === undefined) continue;
    try {
      if (typeof Reflect.get(Object(module?.exports) as object, name) !== 'function') continue;
      const manifest = readFileSync(join(folder, 'package.json'), 'utf8');
      const { exports } = JSON.parse(manifest) as { readonly exports?: unknown };
      const conditions = JSON.stringify(exports ?? {});
      if (!conditions.includes('"import":') || !conditions.includes('"require":')) continue;
    } catch {
      continue; // a getter that throws, or no package.json
    }
    return library!.replaceAll('\\', '/');
  }
  return undefined;
}
