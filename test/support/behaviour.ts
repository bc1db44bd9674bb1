import { join } from 'node:path';

const behaviours = join(import.meta.dirname, '../fixtures/behaviours');

/** The variable's value for a behaviour of `test/fixtures/behaviours`: `file`, or `file#function`. */
export function pathOfBehaviour(name: string): string {
  const [file, ...rest] = name.split('#');
  return [join(behaviours, `${file}.mjs`), ...rest].join('#');
}

/** The environment that gives an app a behaviour. */
export function behaviour(name: string): { readonly BEHAVE: string } {
  return { BEHAVE: pathOfBehaviour(name) };
}

/** The environment that has the program call a function with its runtime. */
export function runtimeBehaviour(name: string): { readonly TEST_RUNTIME: string } {
  return { TEST_RUNTIME: pathOfBehaviour(name) };
}

/** The same as {@link behaviour} of the files that the setup copies for Nest 11. */
export function behaviour11(name: 'socket-io'): { readonly BEHAVE: string } {
  return { BEHAVE: join(behaviours, `../nest-11/${name}.mjs`) };
}
