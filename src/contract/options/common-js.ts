/**
 * True in `dist/common-js` alone, which `rolldown.config.mjs` makes of this build. Test runners
 * that cannot load ES modules use it, above all Jest. It starts neither threads nor workers,
 * because both would have to import the sources of a test.
 */
export const COMMON_JS: boolean = false;
