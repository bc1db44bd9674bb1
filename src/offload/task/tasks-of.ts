import type { Class, ResolvedModuleOptions } from '../../contract/options/module.js';
import type { Found } from '../offload.explorer.js';
import type { Task } from './task.js';
import type { MainFile, ThreadPlan } from '../thread/plan.js';

/** Maximum wait for a thread, in ms. A later answer is of little use to a client, and a burst of this length passes without a 503. */
const QUEUE_TIMEOUT_MS = 5_000;

/** Each method once, with the first of its instances. */
export function methodsOf(found: readonly Found[]): readonly Found[] {
  const definitions = found.map(({ definition }) => definition);
  return found.filter(({ definition }, i) => definitions.indexOf(definition) === i);
}

/** The tasks with their options and the defaults applied. Each task has the index of its method. */
export function tasksOf(
  methods: readonly Found[],
  offload: ResolvedModuleOptions['offload'],
): Task[] {
  return methods.map(({ name, definition }, index) => {
    const { options } = definition;
    return {
      name,
      index,
      timeoutMs: options.timeoutMs ?? offload.timeoutMs,
      queueTimeoutMs: QUEUE_TIMEOUT_MS,
      abortOnDisconnect: options.abortOnDisconnect ?? false,
      queue: options.queue,
    };
  });
}

/** The classes that a thread loads, in the order of the tasks. */
export function planOf(
  methods: readonly Found[],
  module: Class | undefined,
  moduleOrigin: string | undefined,
  main: MainFile | undefined,
): ThreadPlan {
  return {
    tasks: methods.map(({ name, definition, className, injected }) => ({
      name,
      site: definition.site!,
      className,
      injected,
    })),
    module: module && { name: module.name, file: moduleOrigin },
    main,
  };
}
