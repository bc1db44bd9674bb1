import type { Class } from '../../contract/options/module.js';

/** An instance of a class in a result, which structured clone turns into a plain object. */
export interface Instance {
  readonly path: readonly (string | number)[];
  /** Number of the class. */
  readonly type: number;
}

/** Number of the class in the list, which it is added to if it is new. */
export function numberOf(type: Class, classes: Class[]): number {
  const index = classes.indexOf(type);
  return index >= 0 ? index : classes.push(type) - 1;
}

/** Finds the instances of classes in a result: itself, in lists and in fields. */
export function instancesIn(result: unknown, classes: Class[]): Instance[] {
  const found: Instance[] = [];
  const seen = new Set<object>();
  const visit = (value: unknown, path: Instance['path']): void => {
    if (typeof value !== 'object' || value === null || seen.has(value)) return;
    seen.add(value);
    if (Array.isArray(value)) {
      for (const [i, part] of (value as unknown[]).entries()) {
        if (typeof part === 'object') visit(part, [...path, i]);
      }
      return;
    }
    if (Object.prototype.toString.call(value) !== '[object Object]') return;
    const { constructor } = (Object.getPrototypeOf(value) ?? {}) as { constructor?: unknown };
    if (typeof constructor === 'function' && constructor.name !== 'Object') {
      found.push({ path, type: numberOf(constructor as Class, classes) });
    }
    for (const [key, part] of Object.entries(value)) visit(part, [...path, key]);
  };
  visit(result, []);
  return found;
}

/** Makes the copies of instances into instances again. A copy whose class is not known stays a plain object. */
export function restoreInstances(
  result: unknown,
  instances: readonly Instance[],
  classes: readonly (Class | undefined)[],
): void {
  for (const { path, type } of instances) {
    const prototype = classes[type]?.prototype as object | undefined;
    if (prototype === undefined) continue;
    const copy = path.reduce<unknown>((holder, key) => Reflect.get(Object(holder), key), result);
    Object.setPrototypeOf(copy, prototype);
  }
}
