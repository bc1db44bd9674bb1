import { fileURLToPath } from 'node:url';

/** Frames that are looked through. A decorator is applied a few frames below its class. */
const MAX_FRAMES = 30;

/** Frames between a decorator and the file of its class. */
const LIBRARIES =
  /[\\/]node_modules[\\/](?:reflect-metadata|tslib|@nestjs[\\/]common|@(?:swc[\\/]helpers|oxc-project[\\/]runtime|babel[\\/]runtime))[\\/]/;

/** The compilers' names of the function that applies decorators: `__decorate`, `_ts_decorate`, `__decorateClass`. */
const DECORATE = /^_+(?:ts_)?decorate/i;

/** A bundle in CommonJS may have none. */
const HERE = import.meta.url as string | undefined;

/** This package: the caller is in it. */
const OWN_DIRECTORY = HERE && fileURLToPath(new URL('../..', HERE));

/**
 * The file from which this package was called, or, where it was called to decorate, the one with
 * the class: a decorator may be part of another, which is declared somewhere else.
 *
 * @returns an absolute path, or `undefined` for code that is in no file.
 */
export function callerFile(): string | undefined {
  if (OWN_DIRECTORY === undefined) return undefined; // in a file with everything else
  const frames = stack().map((site) => ({
    file: pathOf(site.getFileName()),
    decorates: DECORATE.test(site.getFunctionName() ?? ''),
  }));
  const applied = frames.findIndex(({ decorates }) => decorates);
  // The helper that decorates is in the file itself, or in a library that the file calls.
  // A test runner's helper is in no file at all.
  const below =
    applied === -1
      ? undefined
      : frames
          .slice(frames[applied]!.file === undefined ? applied + 1 : applied)
          .find(({ file }) => isTheirs(file));
  return (below ?? frames.find(({ file }) => isTheirs(file)))?.file;
}

function isTheirs(file: string | undefined): boolean {
  return file === undefined || !(LIBRARIES.test(file) || file.startsWith(OWN_DIRECTORY!));
}

/** Raw frames: source maps change what `stack` says, not where the code is. */
function stack(): NodeJS.CallSite[] {
  const descriptor = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace');
  const { stackTraceLimit } = Error;
  try {
    Error.stackTraceLimit = MAX_FRAMES;
    Error.prepareStackTrace = (_error, sites) => sites;
    const trace: { stack?: NodeJS.CallSite[] } = {};
    Error.captureStackTrace(trace, stack);
    return trace.stack ?? [];
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    if (descriptor === undefined) Reflect.deleteProperty(Error, 'prepareStackTrace');
    else Object.defineProperty(Error, 'prepareStackTrace', descriptor);
  }
}

function pathOf(fileName: string | null | undefined): string | undefined {
  if (fileName?.startsWith('file:')) return fileURLToPath(fileName.replace(/[?#].*$/, ''));
  // CommonJS gives paths; what is evaluated has another kind of name, or none.
  return fileName?.startsWith('/') || /^[A-Za-z]:\\/.test(fileName ?? '') ? fileName! : undefined;
}
