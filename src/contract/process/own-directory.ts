import { fileURLToPath } from 'node:url';

// A bundle in CommonJS may not have `import.meta.url`.
const here = import.meta.url as string | undefined;

/**
 * The directory with the code of this package, `src` or `dist`: both have this file at the same depth.
 * `undefined` in a bundle without URLs.
 */
export const OWN_DIRECTORY = here && fileURLToPath(new URL('../../', here));
