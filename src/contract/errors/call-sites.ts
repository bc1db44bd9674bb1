/**
 * The raw frames of this call: source maps change what `stack` says.
 *
 * @param limit how many frames at most.
 * @param above the frames of this function and of those that it calls are left out.
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
