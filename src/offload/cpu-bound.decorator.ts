import { ClusterConfigurationError } from '../contract/errors/index.js';
import { type CpuBoundOptions, resolveCpuBoundOptions } from '../contract/options/cpu-bound.js';
import { callSite } from './task/call-site.js';
import {
  type CpuBoundDefinition,
  defineCpuBound,
  type Method,
  offloadedCall,
  ownDefinitions,
} from './cpu-bound.metadata.js';

/**
 * Runs a method in a thread, so that the event loop stays free. Controller handlers keep their
 * route, pipes, guards, interceptors and filters. Callers of a provider's method get a promise, so
 * declare the method `async`.
 *
 * The thread imports the file of the class and runs the body on its own instance. It creates that
 * instance by `new` if the constructor takes no arguments, else from `offload.module`. Arguments,
 * results and errors are copied by structured clone, so a class instance arrives as plain data. The
 * app needs `ClusterModule.forRoot()`. Without it, as in a unit test, the method runs directly.
 *
 * A call is rejected with {@link TaskRejectedException} (503), {@link TaskTimeoutException} (504),
 * {@link TaskAbortedException} or {@link ThreadLostException} (500), {@link
 * ClusterUncloneableError}, or the error that the body throws.
 *
 * @throws ClusterConfigurationError if an option is wrong or the decorated member is not a method.
 */
export function CpuBound(options: CpuBoundOptions = {}): MethodDecorator {
  return (target, key, descriptor) => {
    const subject = nameOf(target, key);
    const body = checkedBody(
      target,
      key,
      descriptor as TypedPropertyDescriptor<unknown> | undefined,
      subject,
    );
    const definition: CpuBoundDefinition = {
      owner: target,
      method: key as string,
      options: resolveCpuBoundOptions(options, subject),
      body,
      site: callSite(),
    };
    if (ownDefinitions(target).some(({ method }) => method === key)) {
      throw new ClusterConfigurationError(`${subject} has @CpuBound() twice; leave one`);
    }
    defineCpuBound(definition);
    const value = function (this: unknown, ...args: unknown[]): unknown {
      const offloaded = offloadedCall(this, definition);
      return offloaded === undefined ? body.apply(this, args) : offloaded(args);
    };
    copyMethodMetadata(body, value);
    // Changed in place, because applyDecorators() ignores the return value of a decorator.
    descriptor.value = value as never;
    return descriptor;
  };
}

function checkedBody(
  target: object,
  key: unknown,
  descriptor: TypedPropertyDescriptor<unknown> | undefined,
  subject: string,
): Method {
  if (typeof key === 'object') {
    throw new ClusterConfigurationError(
      '@CpuBound() was applied as a standard decorator; like those of Nest it needs "experimentalDecorators": true in tsconfig.json',
    );
  }
  if (typeof key !== 'string' || typeof target === 'function') {
    throw new ClusterConfigurationError(
      `${subject} cannot have @CpuBound(): a thread finds methods of instances by their name; make it a method that is neither static nor named by a symbol`,
    );
  }
  if (typeof descriptor?.value !== 'function') {
    throw new ClusterConfigurationError(
      `${subject} cannot have @CpuBound(): it is not a method; decorate a method (not a getter, not a property that holds a function)`,
    );
  }
  return descriptor.value as Method;
}

/** Copies the metadata that decorators below `@CpuBound()` have set to the wrapper, where decorators above it read. */
function copyMethodMetadata(from: Method, to: Method): void {
  for (const name of ['name', 'length'] as const) {
    Object.defineProperty(to, name, { value: from[name], configurable: true });
  }
  for (const key of Reflect.getOwnMetadataKeys(from) as unknown[]) {
    Reflect.defineMetadata(key, Reflect.getOwnMetadata(key as string, from), to);
  }
}

function nameOf(target: object, key: unknown): string {
  const className = (typeof target === 'function' ? target : target.constructor).name;
  return `${className}.${String(key)}()`;
}
