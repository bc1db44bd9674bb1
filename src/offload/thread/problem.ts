/** Why a thread cannot run a task. */
export interface Problem {
  readonly task: string;
  /** The cause and the remedy. {@link TASKS} is replaced with the names of the tasks. */
  readonly text: string;
}

/** The placeholder for the names of tasks. */
export const TASKS = '\0';

const INLINE =
  'set CLUSTER_OFFLOAD=inline to run @CpuBound() methods on the event loop, as tests do';

/** Creates the messages. Several tasks with the same problem share a message. */
export function describeProblems(problems: readonly Problem[]): string[] {
  const tasks = new Map<string, string[]>();
  for (const { text, task } of problems) tasks.set(text, [...(tasks.get(text) ?? []), task]);
  return [...tasks].map(([text, names]) => text.replace(TASKS, () => names.join(', ')));
}

export function importFails(file: string, error: unknown): string {
  const remedy = /\.[cm]?tsx?$/.test(file)
    ? 'Node cannot load this TypeScript file: start the app from the output of tsc or SWC, or use a loader that works in threads (tsx on Node 22 or later)'
    : 'Make sure that the code that runs on import also works in a thread, or move the class to its own file';
  return `a thread cannot import ${file}, which declares ${TASKS}: ${reasonOf(error)}. ${remedy}, or ${INLINE}`;
}

export function isUndeclared(file: string, className: string): string {
  return (
    `a thread has imported ${file}, but the import did not declare the class ${className} with ${TASKS}, or declared several classes by that name. ` +
    `Declare the class at the top level of its file, not in a function. If the file is a bundle, import the app's module at the top of main.ts, or pass bootstrap() a function that only imports a file: () => import('./app.js'); or ${INLINE}`
  );
}

export function constructionFails(file: string, className: string, error: unknown): string {
  return (
    `a thread has imported ${file}, but cannot create an instance of ${className} for ${TASKS}: ${reasonOf(error)}. ` +
    `Provide its dependencies in offload.module, and make sure that its constructor works in a thread`
  );
}

/** The error's message with the first stack frame that is in the app's own code. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const frames = String(error.stack)
    .split('\n')
    .filter((line) => /^\s+at /.test(line));
  const place = frames.find((line) => !/node:internal|node:vm|node_modules/.test(line))?.trim();
  const [message] = error.message.split('\n');
  return `${error.name}: ${message}${place === undefined ? '' : ` ${place}`}`;
}
