/**
 * The key of a global function of a worker. It returns a `MethodList` as JSON, and then the functions
 * that the list numbers.
 */
export const LIST_METHODS = Symbol.for('nestjs-cluster.list-methods');
