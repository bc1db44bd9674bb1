import type { Runtime } from 'node:inspector';
import { fileURLToPath } from 'node:url';
import { cpuBoundAt } from './cpu-bound.decorator.js';
import type { Member } from './offload.explorer.js';
import { TRIAL } from './task/tasks-of.js';

/** The key of a global variable with the function whose place the inspector is asked for. */
const ASKED = Symbol.for('nestjs-cluster.asked-function');

/**
 * Gives `@CpuBound()` to a method, before Nest registers the routes.
 *
 * @param name `Class.method`.
 * @returns why the method cannot have it; empty if it has it.
 */
export function beginTrial(
  name: string,
  members: Iterable<Pick<Member, 'type'>>,
  { threads }: { readonly threads: boolean },
): readonly string[] {
  if (!threads) return [`${name}() cannot be tried without threads`];
  const [className, method = ''] = name.split('.');
  const types = new Set([...members].map(({ type }) => type));
  const [type, other] = [...types].filter(
    (each) => each.name === className && Object.hasOwn(each.prototype as object, method),
  );
  if (type === undefined) return [`no controller or provider declares ${name}()`];
  if (other !== undefined) return [`the app has two classes with a method ${name}()`];
  const file = fileOf(type);
  if (file === undefined) return [`${name}() is declared in no file, so no thread can import it`];
  const prototype = type.prototype as object;
  const descriptor = Object.getOwnPropertyDescriptor(prototype, method)!;
  cpuBoundAt(() => ({ file, place: TRIAL }))(prototype, method, descriptor);
  Object.defineProperty(prototype, method, descriptor);
  return [];
}

/** The file that declares a function, as V8 knows it. */
function fileOf(declared: unknown): string | undefined {
  const session = new (process.getBuiltinModule('node:inspector').Session)();
  const urls = new Map<string, string>();
  let url: string | undefined;
  session.on('Debugger.scriptParsed', ({ params }) => urls.set(params.scriptId, params.url));
  session.connect();
  // The callbacks run before post() returns, because the session is of this thread.
  session.post('Debugger.enable');
  Reflect.set(globalThis, ASKED, declared);
  const expression = `globalThis[Symbol.for(${JSON.stringify(ASKED.description)})]`;
  session.post('Runtime.evaluate', { expression }, (_, { result }) => {
    const asked = { objectId: result.objectId!, ownProperties: true };
    session.post('Runtime.getProperties', asked, (_none, properties) => {
      const { internalProperties = [] } = properties as Runtime.GetPropertiesReturnType;
      const place = internalProperties.find((each) => each.name === '[[FunctionLocation]]');
      const { scriptId = '' } = (place?.value?.value ?? {}) as { readonly scriptId?: string };
      url = urls.get(scriptId);
    });
  });
  session.disconnect();
  Reflect.deleteProperty(globalThis, ASKED);
  return url?.startsWith('file:') ? fileURLToPath(url) : url?.startsWith('/') ? url : undefined;
}
