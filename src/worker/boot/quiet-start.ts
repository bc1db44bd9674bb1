/** The part of Nest's `Logger` that is used: `staticInstanceRef` is Nest's own, in Nest 11 and 12 alike. */
interface NestLogger {
  staticInstanceRef: LoggerService | undefined;
  overrideLogger(logger: unknown): unknown;
}

type LoggerService = Partial<Record<string, (...args: unknown[]) => unknown>>;

const QUIET = ['log', 'debug', 'verbose'] as const;
const LOUD = ['warn', 'error', 'fatal'] as const;

/**
 * Has Nest log warnings and errors alone while this worker comes up, also by a logger that the app
 * gives to Nest: another worker shows the same lines already.
 *
 * @param nest the `Logger` of @nestjs/common.
 * @returns what has Nest log as the app wants it.
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
    if (nest.staticInstanceRef === quiet) return; // levels alone
    wanted = nest.staticInstanceRef;
    override(quiet);
  };
  return () => {
    if (own === undefined) Reflect.deleteProperty(nest, 'overrideLogger');
    else Object.defineProperty(nest, 'overrideLogger', own);
    nest.staticInstanceRef = wanted;
  };
}
