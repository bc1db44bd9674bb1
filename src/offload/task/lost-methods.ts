import type { Type } from '@nestjs/common';
import { parameterNames } from './arguments.js';
import type { CpuBoundDefinition } from '../cpu-bound.metadata.js';

// The metadata key that TypeScript writes with `emitDecoratorMetadata`.
const PARAMETERS = 'design:paramtypes';

/** Maximum number of lost methods that a warning names. */
const MAX_NAMED = 3;

/** Warns about parameters whose classes have methods, because an instance arrives in the thread as plain data. */
export function warningsOfParameters(name: string, definition: CpuBoundDefinition): string[] {
  const { owner, method, body } = definition;
  const types = (Reflect.getMetadata(PARAMETERS, owner, method) ?? []) as readonly unknown[];
  const names = parameterNames(body);
  return types.flatMap((type, i) => {
    const lost = methodsOf(type);
    if (lost.length === 0) return [];
    const { name: className } = type as Type;
    const parameter = names[i] ?? `argument ${i + 1}`;
    const shown = lost.slice(0, MAX_NAMED).join(', ') + (lost.length > MAX_NAMED ? ', …' : '');
    return (
      `${name} takes ${parameter}: ${className}, which arrives in its thread as plain data, without ${shown}; ` +
      `make one anew there (Object.assign(new ${className}(), ${parameter}) or plainToInstance()), or take a type without methods`
    );
  });
}

/** The members of a class and of its base classes, without the built-in classes of JavaScript and Node. */
function methodsOf(type: unknown): string[] {
  if (typeof type !== 'function') return [];
  const names = new Set<string>();
  for (
    let prototype = type.prototype as object | null | undefined;
    prototype && !isGlobal(prototype.constructor);
    prototype = Object.getPrototypeOf(prototype) as object | null
  ) {
    for (const name of Object.getOwnPropertyNames(prototype)) names.add(name);
  }
  names.delete('constructor');
  return [...names];
}

function isGlobal(type: unknown): boolean {
  return typeof type !== 'function' || Reflect.get(globalThis, type.name) === type;
}
