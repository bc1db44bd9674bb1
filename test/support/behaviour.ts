import { join } from 'node:path';

const behaviours = join(import.meta.dirname, '../fixtures/behaviours');

/** The environment that gives an app a behaviour of `test/fixtures/behaviours`. */
export function behaviour(name: string): { readonly TEST_APP: string } {
  return { TEST_APP: join(behaviours, `${name}.mjs`) };
}

/** The environment that has the program call `use(runtime)` of a file there. */
export function runtimeBehaviour(name: string): { readonly TEST_RUNTIME: string } {
  return { TEST_RUNTIME: join(behaviours, `${name}.mjs`) };
}

/** The same of those files that the setup copies for Nest 11; for the program `nest11`. */
export function behaviour11(name: 'socket-io'): { readonly TEST_APP: string } {
  return { TEST_APP: join(behaviours, `../nest-11/${name}.mjs`) };
}
