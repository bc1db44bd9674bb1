/**
 * The raw stack frames above the function `above`, at most `limit`. The
 * text of `stack` cannot be parsed instead, because source maps change it.
 */
export function callSites(limit: number, above: (...args: never) => unknown): NodeJS.CallSite[] {
  const prepare = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace');
  const { stackTraceLimit } = Error;
  try {
    Error.stackTraceLimit = limit;
    Error.prepareStackTrace = (_error, sites) => sites;
    const trace: { stack?: NodeJS.CallSite[] } = {};
    Error.captureStackTrace(trace, above);
    return trace.stack ?? [];
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    if (prepare === undefined) Reflect.deleteProperty(Error, 'prepareStackTrace');
    else Object.defineProperty(Error, 'prepareStackTrace', prepare);
  }
}
