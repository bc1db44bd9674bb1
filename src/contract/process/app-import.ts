/**
 * Bundlers may leave the code of an app unevaluated until the function passed to `bootstrap()`
 * imports it. A thread has to evaluate that code without creating the app. So a process notes
 * whether its function imports a file, and a thread notes the function. Two copies of this package
 * share one `globalThis`.
 */
const KEY = Symbol.for('nestjs-cluster.app-import');

type AppImport = (context: never) => unknown;

const holder = globalThis as { [KEY]?: AppImport | undefined };

/** Notes a function that imports the app's file, or may do so. */
export function noteAppImport(importApp: AppImport): void {
  holder[KEY] = importApp;
}

/** The noted function; `undefined` if there is none. */
export function appImport(): AppImport | undefined {
  return holder[KEY];
}
