import { type AppView, classOf, type Member } from '../app-view.js';
import type { Check } from '../check.js';
import { listed } from '../finding.js';

/** The key under which `@CpuBound()` stores the methods of a class: a Map by their names. */
const DEFINITIONS = Symbol.for('nestjs-cluster.cpu-bound');

/** The provider of `ClusterModule` that offloads them. */
const OFFLOAD = 'Offload';

/** Holds for any number of workers, also for none. */
export const cpuBoundInline: Check = {
  name: 'cpu-bound-inline',
  level: 'problem',
  remedy: 'import ClusterModule.forRoot() into the app',
  docs: 'docs/cpu-bound-methods.md',
  look: (app) => {
    if (app.providers.some(({ instance }) => classOf(instance) === OFFLOAD)) return [];
    const methods = [...new Set(membersOf(app).flatMap(methodsOf))];
    if (methods.length === 0) return [];
    return [
      {
        where: listed(methods),
        problem: '@CpuBound() methods run on the event loop, since the app has no ClusterModule',
      },
    ];
  },
};

function membersOf({ controllers, providers }: AppView): Member[] {
  return [...controllers, ...providers];
}

function methodsOf({ type, module }: Member): string[] {
  const names: string[] = [];
  for (
    let owner = type?.prototype as object | null | undefined;
    owner && owner !== Object.prototype;
    owner = Object.getPrototypeOf(owner) as object | null
  ) {
    const own = Object.getOwnPropertyDescriptor(owner, DEFINITIONS)?.value as unknown;
    if (own instanceof Map) names.push(...(own.keys() as Iterable<string>));
  }
  return names.map((name) => `${type!.name}.${name}() (${module})`);
}
