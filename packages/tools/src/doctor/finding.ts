import type { FindingName } from 'nestjs-cluster/bootstrap';

/** A part of an app that does not work correctly with several workers. */
export interface Finding {
  readonly name: FindingName;
  /** The class and its module, or the file. */
  readonly where: string;
  /** The consequence of running several workers. */
  readonly problem: string;
  readonly remedy: string;
}

export type Class = abstract new (...args: never[]) => unknown;

/** A provider or controller in Nest's container. */
export interface Member {
  /** Name of the module that declares it. */
  readonly module: string;
  readonly token: unknown;
  /** `undefined` if a factory created the instance. */
  readonly type: Class | undefined;
  readonly instance: unknown;
}

/** Parts of an app read by the checks. `bootstrap()` of nestjs-cluster collects them. */
export interface AppView {
  readonly providers: readonly Member[];
  readonly controllers: readonly Member[];
  readonly socketServers: readonly unknown[];
}

/** The inputs for the numbers in findings. */
export interface Situation {
  readonly workers: number;
  /** Connection limit of the database; `undefined` = the usual limit for its kind. */
  readonly maxConnections?: number | undefined;
}

/** The number of workers that a reload runs beside all others: a quarter, rounded up. */
export const surge = (workers: number): number => Math.ceil(workers / 4);

/** A check for one kind of finding. Checks read tokens, class names and metadata, and load no library. */
export interface Check extends Pick<Finding, 'name' | 'remedy'> {
  readonly look: (
    app: AppView,
    situation: Situation,
  ) => readonly Pick<Finding, 'where' | 'problem'>[];
}

/** Runs the checks. Ignores a check that throws, because the app may use an unexpected version of a library. */
export function findingsOf(
  checks: readonly Check[],
  app: AppView,
  situation: Situation,
): readonly Finding[] {
  return checks.flatMap(({ look, ...finding }) => {
    try {
      return look(app, situation).map((seen) => ({ ...finding, ...seen }));
    } catch {
      return [];
    }
  });
}

/** The name of an object's class, without a bundler's suffix (`Adapter$1`). */
export function classOf(value: unknown): string {
  const name = at(value, 'constructor', 'name');
  return typeof name === 'string' ? name.replace(/\$\d+$/, '') : '';
}

/** The value at a property path; `undefined` if a property on it is missing. */
export function at(value: unknown, ...path: (string | symbol)[]): unknown {
  return path.reduce<unknown>(
    (inner, key) =>
      inner === Object(inner) ? (Reflect.get(inner as object, key) as unknown) : undefined,
    value,
  );
}

/** Metadata set by a decorator; `undefined` if reflect-metadata is not loaded. */
export function metadataOf(key: string, target: object): unknown {
  const reflect = Reflect as { getMetadata?(key: string, target: object): unknown };
  return reflect.getMetadata?.(key, target);
}

/** The prototypes of a class and of the classes that it extends. */
export function prototypesOf({ prototype }: Class): object[] {
  const owners: object[] = [];
  let owner = prototype as object | null;
  for (; owner !== null && owner !== Object.prototype; owner = Object.getPrototypeOf(owner)) {
    owners.push(owner);
  }
  return owners;
}

/** The name of a provider or controller in a finding. */
export function nameOf({ type, token, instance, module }: Member): string {
  return `${type?.name ?? (typeof token === 'string' ? token : classOf(instance))} (${module})`;
}
