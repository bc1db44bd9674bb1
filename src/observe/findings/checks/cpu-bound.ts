import { prototypesOf } from '../../endpoints/controller-routes.js';
import { classOf, type Member } from '../app-view.js';
import { type Check, listed } from '../finding.js';

/** The key under which `@CpuBound()` stores the methods of a class: a Map by their names. */
const DEFINITIONS = Symbol.for('nestjs-cluster.cpu-bound');

/** The provider of `ClusterModule` that offloads the methods. */
const OFFLOAD = 'Offload';

/** Applies to any number of workers, also to 0. */
export const cpuBoundInline: Check = {
  name: 'cpu-bound-inline',
  remedy: 'import ClusterModule.forRoot() into the app',
  look: ({ controllers, providers }) => {
    if (providers.some(({ instance }) => classOf(instance) === OFFLOAD)) return [];
    const methods = new Set([...controllers, ...providers].flatMap(cpuBoundMethodsOf));
    if (methods.size === 0) return [];
    return [
      {
        where: listed([...methods]),
        problem: '@CpuBound() methods run on the event loop, since the app has no ClusterModule',
      },
    ];
  },
};

function cpuBoundMethodsOf({ type, module }: Member): string[] {
  if (type === undefined) return [];
  return [...prototypesOf(type)].flatMap((owner) => {
    const own = Object.getOwnPropertyDescriptor(owner, DEFINITIONS)?.value as unknown;
    const names = own instanceof Map ? [...(own.keys() as Iterable<string>)] : [];
    return names.map((name) => `${type.name}.${name}() (${module})`);
  });
}
