import { fileURLToPath } from 'node:url';
import { callSites } from '../../contract/errors/call-sites.js';
import { OWN_DIRECTORY } from '../../contract/process/own-directory.js';

/** Maximum number of stack frames that are searched. A decorator is called a few frames below its class. */
const MAX_FRAMES = 30;

/** Libraries that may stand in the stack between a decorator and the file of the decorated class. */
const LIBRARIES =
  /[\\/]node_modules[\\/](?:reflect-metadata|tslib|@nestjs[\\/]common|@(?:swc[\\/]helpers|oxc-project[\\/]runtime|babel[\\/]runtime))[\\/]/;

/** The compilers' names of the function that applies decorators: `__decorate`, `_ts_decorate`, `__decorateClass`. */
const DECORATE = /^_+(?:ts_)?decorate/i;

/**
 * The file from which this package was called. For a decorator, the file of the decorated class: the
 * decorator may be a part of another decorator, which is declared in another file.
 *
 * @returns an absolute path; `undefined` for code that is in no file.
 */
export function callerFile(): string | undefined {
  // without a URL, this package is bundled into one CommonJS file with the app
  if (OWN_DIRECTORY === undefined) return undefined;
  const frames = callSites(MAX_FRAMES, callerFile);
  // The class is the caller of the helper that applies decorators. The helper is in the file of the
  // class, or in a library that this file calls.
  const applied = frames.findIndex((site) => DECORATE.test(site.getFunctionName() ?? ''));
  const files = frames.slice(applied + 1).map((site) => pathOf(site.getFileName()));
  return files.find(
    (file) => file === undefined || !(LIBRARIES.test(file) || file.startsWith(OWN_DIRECTORY!)),
  );
}

function pathOf(fileName: string | null | undefined): string | undefined {
  if (fileName?.startsWith('file:')) return fileURLToPath(fileName);
  // The frames of CommonJS files have paths. Evaluated code has another kind of name, or none.
  return fileName?.startsWith('/') || /^[A-Za-z]:\\/.test(fileName ?? '') ? fileName! : undefined;
}
