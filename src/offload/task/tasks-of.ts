import type { Class, ResolvedModuleOptions } from '../../contract/options/module.js';
import { parameterNames } from './arguments.js';
import { type CpuBoundDefinition, functionNameOf } from '../cpu-bound.metadata.js';
import type { Found } from '../offload.explorer.js';
import type { Task } from './task.js';
import type { MainFile, PlannedTask, ThreadPlan } from '../thread/plan.js';

/** Stands for the place of a class that has no `@CpuBound()`, in a trial. */
export const TRIAL = 'trial';

/** The tasks with their options and the defaults applied. Each task has the index of its definition. */
export function tasksOf(
  definitions: readonly CpuBoundDefinition[],
  found: readonly Found[],
  offload: ResolvedModuleOptions['offload'],
): Task[] {
  return definitions.map((definition, index) => {
    const { options, body } = definition;
    return {
      name: firstOf(definition, found).name,
      functionName: functionNameOf(definition),
      index,
      timeoutMs: options.timeoutMs ?? offload.timeoutMs,
      queueTimeoutMs: options.queueTimeoutMs ?? offload.queueTimeoutMs,
      coalesce: options.coalesce ?? false,
      abortOnDisconnect: options.abortOnDisconnect ?? true,
      mode: options.mode ?? 'thread',
      queue: options.queue,
      parameters: parameterNames(body),
    };
  });
}

/** The classes that a thread loads, in the order of the tasks. */
export function planOf(
  definitions: readonly CpuBoundDefinition[],
  found: readonly Found[],
  module: Class | undefined,
  moduleOrigin: string | undefined,
  main: MainFile | undefined,
): ThreadPlan {
  return {
    tasks: definitions.map((definition): PlannedTask => {
      const { name, className, injected } = firstOf(definition, found);
      const site = definition.site!;
      const trial = site.place === TRIAL && { trial: definition.method };
      return { name, site, className, injected, ...trial };
    }),
    module: module && { name: module.name, file: moduleOrigin },
    main,
  };
}

/** The first of the instances that have the method. */
function firstOf(definition: CpuBoundDefinition, found: readonly Found[]): Found {
  return found.find((each) => each.definition === definition)!;
}
