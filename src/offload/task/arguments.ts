import { ClusterUncloneableError } from '../../contract/errors/index.js';
import { findUncloneable } from './cloneable.js';
import { contentsOf, moveAll, restoreBuffers } from './parcel.js';
import type { RunRequest } from './runner.interface.js';
import type { Task } from './task.js';

/**
 * Copies a request with the current values of its arguments and contexts.
 *
 * @throws the error of structured clone for values that it refuses.
 */
export function copyRequest({ task, args, contexts }: RunRequest): RunRequest {
  const { moved, buffers } = contentsOf(args);
  const copy = structuredClone({ args: [...args], contexts }, { transfer: moved });
  restoreBuffers(copy.args, buffers);
  // Nobody else uses the copies, so the thread gets them moved, not copied once more.
  moveAll(copy.args);
  return { task, ...copy };
}

/** The error that names the argument, and the part of it, that could not be copied to a thread. */
export function uncloneableArguments(
  task: Task,
  { args, contexts }: Pick<RunRequest, 'args' | 'contexts'>,
  cause: unknown,
): ClusterUncloneableError {
  const obstacles = [
    ...args.map((arg, i) => findUncloneable(arg, parameterName(task, i))),
    ...Object.entries(contexts ?? {}).map(([name, store]) =>
      findUncloneable(store, `the carried context "${name}"`),
    ),
  ];
  const obstacle = obstacles.find((found) => found !== undefined);
  return new ClusterUncloneableError(
    `${task.name}: the arguments cannot be copied to a thread: ${obstacle ?? String(cause)}; pass plain data (what structuredClone() takes)`,
    { cause },
  );
}

function parameterName({ parameters }: Task, index: number): string {
  const name = parameters[index];
  return `argument ${index + 1}${name === undefined ? '' : ` (${name})`}`;
}

/**
 * Names of a method's parameters, up to the first parameter that is a pattern or has a default.
 * They are read from its source, and used only in messages.
 */
export function parameterNames(method: (...args: never[]) => unknown): string[] {
  const list = /^[^(]*\(([^()]*)/.exec(String(method))?.[1] ?? '';
  const [plain] = list.split(/[={[.]/); // a default or a pattern may have commas of its own
  return plain!
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}
