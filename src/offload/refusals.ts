import type { Type } from '@nestjs/common';
import { realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Found, Member } from './offload.explorer.js';

/** The facts that are the same for all methods of an app. */
export interface Situation {
  /** Whether there is an `offload.module`. */
  readonly hasModule: boolean;
  /** Whether calls run in threads, which import the files of the classes. */
  readonly threads: boolean;
  /** The main file of the program, if a thread that imports it would start the app again. */
  readonly mainFile: string | undefined;
}

/** The path under which Node has imported the main file. */
export function mainFile(): string | undefined {
  try {
    // resolve() completes the path as Node does for `node dist/main` and `node dist`.
    return realpathSync(createRequire(import.meta.url).resolve(process.argv[1]!));
  } catch {
    return undefined; // a program from standard input, or `node --eval`
  }
}

/** Why a thread cannot import the file that calls `forRoot()` with `offload.module`; `undefined` if a thread can. */
export function refusalOfModule(
  name: string,
  file: string | undefined,
  { threads, mainFile }: Situation,
): string | undefined {
  if (!threads || file === undefined || file !== mainFile) return undefined;
  return (
    `offload.module (${name}) is given to forRoot() in ${file}, which starts the app: a thread that imports it would start another; ` +
    `move the module that imports ClusterModule to a file of its own, or start the app by ClusterModule.bootstrap()`
  );
}

/** The facts about a `@CpuBound()` method that are known without a thread. */
export type Subject = Situation & Omit<Member & Found, 'instance'>;

// Metadata keys of Nest, the same in 11 and 12.
const ROUTE_ARGUMENTS = '__routeArguments__';
const SSE = '__sse__';

/** Decorators of parameters that hold sockets and functions. Nest's keys begin with the index in this list. */
const OF_THE_CONNECTION = ['@Req()', '@Res()', '@Next()'] as const;

/** Why a method cannot run in a thread, with the remedy; `undefined` if no reason is known. */
export function refusalOf(subject: Subject): string | undefined {
  const { name, definition, type, isStatic, injected, hasModule } = subject;
  const owner = definition.owner.constructor;
  if (owner !== type) {
    return (
      `${name} is inherited from ${owner.name}, of which a thread would make an instance, not of ${type.name}; ` +
      `override it in ${type.name} with @CpuBound() and call super.${definition.method}()`
    );
  }
  const parameter = connectionParameter(subject);
  if (parameter !== undefined) {
    return (
      `${name} takes ${parameter}, which cannot leave the event loop; ` +
      `take what it needs by @Param(), @Query(), @Body() or @Headers(), and leave the response to Nest`
    );
  }
  // The metadata of @Sse() is on the body if @Sse() is below @CpuBound(), else on the wrapper.
  const method = (type.prototype as Record<string, object>)[definition.method]!;
  if (Reflect.getMetadata(SSE, definition.body) || Reflect.getMetadata(SSE, method)) {
    return `${name} is an @Sse() stream, which cannot come from a thread; compute each event in a @CpuBound() method of a provider`;
  }
  if (!isStatic) {
    return (
      `${name} belongs to a class with an instance for each request or each consumer (scope REQUEST or TRANSIENT, its own or that of something injected); ` +
      `move the method to a provider of default scope, and pass what it needs of the request as arguments`
    );
  }
  if (injected && !hasModule) {
    return (
      `the constructor of ${type.name} takes arguments, or Nest injects its properties, and a thread does not know with what, for ${name}; ` +
      `move the method to a provider of its own, without a constructor: @Injectable() export class ${type.name}Work { @CpuBound() ${definition.method}(…) { … } }; ` +
      `or give the threads a module with the dependencies: @Module({ providers: [${dependenciesOf(type)}] }) export class ThreadModule {}, and ClusterModule.forRoot({ offload: { module: ThreadModule } }), with forRootAsync() beside useFactory`
    );
  }
  return subject.threads ? refusalOfFile(subject) : undefined;
}

/** The classes that the constructor asks for; `…` for an interface, and for a type that the compiler has not emitted. */
function dependenciesOf(type: Type): string {
  const types = (Reflect.getMetadata('design:paramtypes', type) ?? []) as (Type | undefined)[];
  const names = types.map((each) => (each === Object || !each?.name ? '…' : each.name));
  return names.join(', ') || '…';
}

function refusalOfFile({ name, definition, mainFile }: Subject): string | undefined {
  const { file } = definition;
  if (file === undefined) {
    return (
      `${name} is declared in code that is evaluated and in no file, so that no thread can import it; ` +
      `with webpack or rspack set devtool: 'source-map' in the place of an "eval" one, or set CLUSTER_OFFLOAD=inline`
    );
  }
  if (file === mainFile) {
    return (
      `${name} is declared in ${file}, which starts the app: a thread that imports it would start another; ` +
      `declare the class in a file of its own, or start the app by ClusterModule.bootstrap()`
    );
  }
  return undefined;
}

function connectionParameter({ type, definition }: Subject): string | undefined {
  const parameters = Reflect.getMetadata(ROUTE_ARGUMENTS, type, definition.method) as
    Record<string, unknown> | undefined;
  // Keys are `number:index`. Keys of custom decorators have text instead of the number.
  const kinds = Object.keys(parameters ?? {}).map(
    (key) => OF_THE_CONNECTION[Number(key.split(':')[0])],
  );
  return kinds.find((kind) => kind !== undefined);
}
