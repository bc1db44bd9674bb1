/** Injection token of the module's `ResolvedModuleOptions`. */
export const MODULE_OPTIONS = Symbol('nestjs-cluster.module-options');
