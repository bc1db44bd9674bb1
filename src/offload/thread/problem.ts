/** Why a thread cannot run a task. */
export interface Problem {
  /** Name of the task. */
  readonly task: string;
  /** The cause and the remedy, with {@link TASKS} in the place of the task. */
  readonly text: string;
}

/** Stands for the names of tasks in the text of a problem. */
export const TASKS = '\0';

const INLINE =
  'set CLUSTER_OFFLOAD=inline to run @CpuBound() methods on the event loop, as tests do';

/** Describes problems in words. A problem of several tasks is described once. */
export function describeProblems(problems: readonly Problem[]): string[] {
  const tasks = new Map<string, string[]>();
  for (const { text, task } of problems) tasks.set(text, [...(tasks.get(text) ?? []), task]);
  return [...tasks].map(([text, names]) => text.replace(TASKS, () => names.join(', ')));
}

export function importFails(file: string, error: unknown): string {
  const remedy = /\.[cm]?tsx?$/.test(file)
    ? 'It is TypeScript, and threads run what Node can: start the app from the output of tsc or SWC, or by a loader that works in threads (tsx on Node 22 or later)'
    : 'The code that the file runs at import must work in a thread too; else move the class to a file of its own';
  return `a thread cannot import ${file}, which declares ${TASKS}: ${reasonOf(error)}. ${remedy}, or ${INLINE}`;
}

/** The import of a file does not declare a class. */
export function isUndeclared(file: string, className: string): string {
  return (
    `a thread has imported ${file}, but the import did not declare the class ${className} with ${TASKS}, or declared several of this name. ` +
    `Declare the class at the top level of its file, not in a function. If a bundler made the file, main.ts decides: import the app's module at the top of main.ts, or give bootstrap() a function that only imports a file, () => import('./app.js'); or ${INLINE}`
  );
}

export function constructionFails(file: string, className: string, error: unknown): string {
  return (
    `a thread has imported ${file}, but cannot make an instance of ${className} for ${TASKS}: ${reasonOf(error)}. ` +
    `Its dependencies have to be provided by offload.module, and its constructor has to work in a thread too`
  );
}

/** An error with its first stack frame that belongs neither to Node nor to a dependency. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const frames = String(error.stack)
    .split('\n')
    .filter((line) => /^\s+at /.test(line));
  const place = frames.find((line) => !/node:internal|node:vm|node_modules/.test(line))?.trim();
  const [message] = error.message.split('\n');
  return `${error.name}: ${message}${place === undefined ? '' : ` ${place}`}`;
}
