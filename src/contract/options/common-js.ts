/**
 * True only in `dist/common-js`, which `build.mjs` makes for test runners that cannot
 * load ES modules, above all Jest. That build starts neither threads nor workers, because both
 * would have to import the sources of a test.
 */
export const COMMON_JS: boolean = false;
