import type { CpuBoundDefinition, Method } from '../cpu-bound.metadata.js';
import type { CallSite } from '../task/call-site.js';

/** The key of a global variable in which the inspector leaves what it has found. */
const FOUND = Symbol.for('nestjs-cluster.found-classes');

const FIND = `function (key, name, method) {
  globalThis[Symbol.for(key)] = this.filter((each) =>
    typeof each === 'function' && each.name === name && Object.hasOwn(each.prototype ?? {}, method));
}`;

/**
 * Finds a method of a class that this thread has declared, and that has no `@CpuBound()`. V8 lists
 * all functions of the thread, so the class need not be exported.
 */
export function methodOfClass(
  className: string,
  method: string,
  site: CallSite,
): CpuBoundDefinition | undefined {
  const session = new (process.getBuiltinModule('node:inspector').Session)();
  session.connect();
  // The callbacks run before post() returns, because the session is of this thread.
  session.post('Runtime.evaluate', { expression: 'Function.prototype' }, (_, { result }) => {
    const prototypeObjectId = result.objectId!;
    session.post('Runtime.queryObjects', { prototypeObjectId }, (_none, { objects }) => {
      const values = [FOUND.description, className, method].map((value) => ({ value }));
      const call = { objectId: objects.objectId!, functionDeclaration: FIND, arguments: values };
      session.post('Runtime.callFunctionOn', call);
    });
  });
  session.disconnect();
  const [found] = (Reflect.get(globalThis, FOUND) ?? []) as { readonly prototype: object }[];
  Reflect.deleteProperty(globalThis, FOUND);
  if (found === undefined) return undefined;
  const owner = found.prototype;
  const body = Reflect.get(owner, method) as Method;
  return { owner, method, options: {}, body, site };
}
