import { fileURLToPath } from 'node:url';
import { callSites } from '../../contract/errors/call-sites.js';
import { OWN_DIRECTORY } from '../../contract/process/own-directory.js';

/** Maximum number of stack frames that are searched. The class is only a few frames above its decorator. */
const MAX_FRAMES = 30;

/** Frames of these libraries can be between a decorator and the file of the decorated class. */
const LIBRARIES =
  /[\\/]node_modules[\\/](?:reflect-metadata|tslib|@nestjs[\\/]common|@(?:swc[\\/]helpers|oxc-project[\\/]runtime|babel[\\/]runtime))[\\/]/;

/** Compilers apply decorators with a helper: `__decorate`, `_ts_decorate` or `__decorateClass`. */
const DECORATE = /^_+(?:ts_)?decorate/i;

/**
 * The file that called this package. For a decorator, the file of the decorated class, even if an
 * app decorator in another file calls ours.
 *
 * @returns an absolute path. `undefined` for evaluated code without a file.
 */
export function callerFile(): string | undefined {
  // This package and the app are bundled into one CommonJS file, which has no `import.meta.url`.
  if (OWN_DIRECTORY === undefined) return undefined;
  const frames = callSites(MAX_FRAMES, callerFile);
  // The file of the class calls the helper that applies decorators. The helper is in the same file or in
  // a library.
  const applied = frames.findIndex((site) => DECORATE.test(site.getFunctionName() ?? ''));
  const files = frames.slice(applied + 1).map((site) => pathOf(site.getFileName()));
  return files.find(
    (file) => file === undefined || !(LIBRARIES.test(file) || file.startsWith(OWN_DIRECTORY!)),
  );
}

function pathOf(fileName: string | null | undefined): string | undefined {
  if (fileName?.startsWith('file:')) return fileURLToPath(fileName);
  // Frames of CommonJS files have paths. Evaluated code has another name or none.
  return fileName?.startsWith('/') || /^[A-Za-z]:\\/.test(fileName ?? '') ? fileName! : undefined;
}
