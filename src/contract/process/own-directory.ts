import { fileURLToPath } from 'node:url';

// A CommonJS bundle may not have `import.meta.url`.
const here = import.meta.url as string | undefined;

/**
 * The directory with this package's code, `src` or `dist`: this file has the same depth in both.
 * `undefined` in a bundle without `import.meta.url`.
 */
export const OWN_DIRECTORY = here && fileURLToPath(new URL('../../', here));
