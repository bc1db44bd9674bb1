import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { Class } from '../../contract/options/module.js';

/** Identifies a class in another thread, because classes cannot be cloned. */
export interface ExportedClass {
  readonly file: string;
  readonly name: string;
}

/** Minimum time between two searches: a task may declare a new class in each call. */
const SEARCH_MS = 60_000;

/** Finds classes in the exports of the app's files that this thread has loaded. */
export class ExportedClasses {
  readonly #places = new WeakMap<object, ExportedClass>();
  #searchAt = 0;

  async find(type: Class): Promise<ExportedClass | undefined> {
    if (!this.#places.has(type) && performance.now() >= this.#searchAt) {
      await Promise.all((await loadedFiles()).map((file) => this.#read(file)));
      this.#searchAt = performance.now() + SEARCH_MS;
    }
    return this.#places.get(type);
  }

  async #read(file: string): Promise<void> {
    for (const [name, value] of Object.entries(await exportsOf(file))) {
      if (typeof value === 'function') this.#places.set(value, { file, name });
    }
  }
}

/** Finds the class in this thread. `undefined` if the file does not export it. */
export async function classAt({ file, name }: ExportedClass): Promise<Class | undefined> {
  return (await exportsOf(file))[name] as Class | undefined;
}

/** The exports of a loaded file. Empty if it cannot be imported. */
async function exportsOf(file: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    // Reading an export that is not yet initialised throws. The copy makes this happen inside `try`.
    return { ...((commonJsAt(file)?.exports ?? (await import(file))) as object) };
  } catch {
    return {};
  }
}

function commonJsAt(file: string): NodeModule | undefined {
  const { cache } = createRequire(import.meta.url);
  return cache[file.startsWith('file:') ? fileURLToPath(file) : file];
}

/** The app's files that this thread has loaded. Only the inspector has a list of all ES modules. */
async function loadedFiles(): Promise<string[]> {
  const files: string[] = [];
  try {
    const { Session } = await import('node:inspector'); // some builds of Node have no inspector
    const session = new Session();
    session.connect();
    session.on('Debugger.scriptParsed', ({ params: { url, isModule } }) => {
      if (!/^file:|^\/|^[a-z]:\\/i.test(url) || /[\\/]node_modules[\\/]/.test(url)) return;
      if (isModule === true || commonJsAt(url) !== undefined) files.push(url);
    });
    session.post('Debugger.enable');
    session.disconnect();
  } catch {
    // Without the inspector, no class is found.
  }
  return files;
}
