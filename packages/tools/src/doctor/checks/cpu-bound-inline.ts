import { type Check, classOf, prototypesOf } from '../finding.js';

/** The key under which `@CpuBound()` stores the methods of a class: a Map by their names. */
const DEFINITIONS = Symbol.for('nestjs-cluster.cpu-bound');

export const cpuBoundInline: Check = {
  name: 'cpu-bound-inline',
  remedy: 'import ClusterModule.forRoot() into the app',
  look: ({ controllers, providers }) =>
    // `Offload` is the provider of ClusterModule that runs the methods in threads.
    providers.some(({ instance }) => classOf(instance) === 'Offload')
      ? []
      : [...controllers, ...providers]
          .filter(
            ({ type }) =>
              type && prototypesOf(type).some((each) => Object.hasOwn(each, DEFINITIONS)),
          )
          .map(({ type, module }) => ({
            where: `${type!.name} (${module})`,
            problem:
              '@CpuBound() methods run on the event loop, since the app has no ClusterModule',
          })),
};
