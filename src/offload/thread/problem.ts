/** Why a thread cannot run a task. */
export interface Problem {
  readonly kind: 'import' | 'undeclared' | 'construct' | 'module';
  /** Name of the task. */
  readonly task: string;
  readonly file: string;
  readonly className: string;
  /** The error, with its place in the code. */
  readonly reason: string;
}

const INLINE =
  'set CLUSTER_OFFLOAD=inline to run @CpuBound() methods on the event loop, as tests do';

const TYPESCRIPT = /\.[cm]?tsx?$/;

/** Describes problems in words. A problem of several tasks is described once. */
export function describeProblems(problems: readonly Problem[]): string[] {
  const tasks = new Map<string, string[]>();
  for (const problem of problems) {
    const text = describe(problem);
    tasks.set(text, [...(tasks.get(text) ?? []), problem.task]);
  }
  return [...tasks].map(([text, names]) => text.replace(TASKS, () => names.join(', ')));
}

/** Stands for the names of tasks in a description. */
const TASKS = '\0';

function describe({ kind, file, className, reason }: Problem): string {
  switch (kind) {
    case 'import':
      return `a thread cannot import ${file}, which declares ${TASKS}: ${reason}. ${remedyForImport(file)}`;
    case 'undeclared':
      return (
        `a thread has imported ${file}, but the import did not declare the class ${className} with ${TASKS}, or declared several of this name. ` +
        `Declare the class at the top level of its file, not in a function. If a bundler made the file, main.ts decides: import the app's module at the top of main.ts, or give bootstrap() a function that only imports a file, () => import('./app.js'); or ${INLINE}`
      );
    case 'construct':
      return (
        `a thread has imported ${file}, but cannot make an instance of ${className} for ${TASKS}: ${reason}. ` +
        `Its dependencies have to be provided by offload.module, and its constructor has to work in a thread too`
      );
    case 'module':
      return `${reason} (needed by ${TASKS})`;
  }
}

function remedyForImport(file: string): string {
  return TYPESCRIPT.test(file)
    ? `It is TypeScript, and threads run what Node can: start the app from the output of tsc or SWC, or by a loader that works in threads (tsx on Node 22 or later), or ${INLINE}`
    : `The code that the file runs at import must work in a thread too; else move the class to a file of its own, or ${INLINE}`;
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
