/**
 * True in `dist/common-js` alone, which `rolldown.config.mjs` makes of this build. Test runners
 * that cannot load ES modules take it, above all Jest: there are no threads and no workers, as
 * both would have to import the sources of a test.
 */
export const COMMON_JS: boolean = false;
