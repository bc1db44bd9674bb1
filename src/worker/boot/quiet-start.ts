/** The used part of Nest's `Logger`. `staticInstanceRef` is an internal of Nest 11 and 12. */
interface NestLogger {
  staticInstanceRef: LoggerService | undefined;
  overrideLogger(logger: unknown): unknown;
}

type LoggerService = Partial<Record<string, (...args: unknown[]) => unknown>>;

const QUIET = ['log', 'debug', 'verbose'] as const;
const LOUD = ['warn', 'error', 'fatal'] as const;

/**
 * Makes Nest log only warnings and errors while this worker starts, because another worker logs the
 * same lines. A logger that the app gives to Nest is also limited to them.
 *
 * @returns a function that makes Nest log again as the app wants.
 */
export function quietStart(nest: NestLogger): () => void {
  let wanted = nest.staticInstanceRef;
  const override = nest.overrideLogger.bind(nest);
  const own = Object.getOwnPropertyDescriptor(nest, 'overrideLogger');
  const forward =
    (name: string) =>
    (...args: unknown[]) =>
      wanted?.[name]?.(...args);
  const quiet: LoggerService = {
    ...Object.fromEntries(QUIET.map((name) => [name, () => {}])),
    ...Object.fromEntries([...LOUD, 'setLogLevels'].map((name) => [name, forward(name)])),
  };
  override(quiet);
  nest.overrideLogger = (logger) => {
    override(logger);
    if (nest.staticInstanceRef === quiet) return; // the call has only set log levels
    wanted = nest.staticInstanceRef;
    override(quiet);
  };
  return () => {
    if (own === undefined) Reflect.deleteProperty(nest, 'overrideLogger');
    else Object.defineProperty(nest, 'overrideLogger', own);
    nest.staticInstanceRef = wanted;
  };
}
