const KEY = Symbol.for('nestjs-cluster.app-import');

/**
 * Holds the function passed to `bootstrap()`. A thread may have to call it, because a bundle evaluates
 * the app's code only in that call. A process that runs the app holds it only if it imports a file.
 */
const holder = globalThis as { [KEY]?: (context: never) => unknown };

export function noteAppImport(importApp: (context: never) => unknown): void {
  holder[KEY] = importApp;
}

export function appImport(): ((context: never) => unknown) | undefined {
  return holder[KEY];
}
