const KEY = Symbol.for('nestjs-cluster.app-import');

/**
 * Holds the function passed to `bootstrap()`: in a process if it imports a file, in a thread always.
 * A thread may have to call the function, because a bundle evaluates the app's code only in that call.
 */
const holder = globalThis as { [KEY]?: (context: never) => unknown };

export function noteAppImport(importApp: (context: never) => unknown): void {
  holder[KEY] = importApp;
}

export function appImport(): ((context: never) => unknown) | undefined {
  return holder[KEY];
}
