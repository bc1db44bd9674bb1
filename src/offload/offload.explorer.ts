import { Inject, Injectable, type Type } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { type CpuBoundDefinition, definitionsOf } from './cpu-bound.decorator.js';
import type { RemoteRunner } from './run/remote-runner.js';

/** A method that is to be offloaded, with the app's instance of its class. */
export interface Found {
  readonly name: string;
  readonly definition: CpuBoundDefinition;
  readonly instance: object;
  /** Whether Nest injects something into the constructor or a property. */
  readonly injected: boolean;
}

/** A controller or provider. */
interface Member {
  readonly type: Type;
  /** Whether the class has one instance, which is created at start. */
  readonly isStatic: boolean;
  readonly injected: boolean;
  readonly instance: object | null | undefined;
}

/** The facts that are the same for all methods of an app. */
export interface Situation {
  /** Whether there is an `offload.module`. */
  readonly hasModule: boolean;
  /** Whether calls run in threads, which import the files of the classes. */
  readonly threads: boolean;
  /** The main file of the program, if a thread that imports it would start the app again. */
  readonly mainFile: string | undefined;
}

/** The facts about a `@CpuBound()` method that are known without a thread. */
export type Subject = Situation & Omit<Member & Found, 'instance'>;

// Metadata keys of Nest, the same in 11 and 12.
const CONSTRUCTOR_PARAMETERS = 'design:paramtypes';
const INJECTED_PARAMETERS = 'self:paramtypes';
const INJECTED_PROPERTIES = 'self:properties_metadata';
const ROUTE_ARGUMENTS = '__routeArguments__';
const SSE = '__sse__';

/** Decorators of parameters that hold sockets and functions. Nest's keys begin with the index in this list. */
const OF_THE_CONNECTION = ['@Req()', '@Res()', '@Next()'] as const;

/** Finds the `@CpuBound()` methods of all controllers and providers. */
@Injectable()
export class OffloadExplorer {
  constructor(@Inject(DiscoveryService) private readonly discovery: DiscoveryService) {}

  /** The methods that can be offloaded, and messages about the others, each with a remedy. */
  explore(situation: Situation): { found: readonly Found[]; refusals: readonly string[] } {
    const found: Found[] = [];
    const refusals: string[] = [];
    for (const member of this.members()) {
      const { type, instance, injected } = member;
      for (const definition of definitionsOf(type.prototype as object)) {
        const name = definition.options.name ?? `${type.name}.${definition.method}`;
        const refusal = refusalOf({ ...member, name, definition, ...situation });
        if (refusal !== undefined) refusals.push(refusal);
        else if (instance) found.push({ name, definition, injected, instance });
      }
    }
    return { found, refusals: [...new Set([...refusals, ...namesakes(found)])] };
  }

  /** The controllers and providers with a class, each instance once. */
  *members(): Generator<Member> {
    const seen = new Set<unknown>();
    for (const wrapper of [...this.discovery.getControllers(), ...this.discovery.getProviders()]) {
      // A factory may create an instance of any class. A provider that is not created at start has
      // only a class.
      const instance = wrapper.instance as object | null | undefined;
      const type = classOf(instance) ?? (wrapper.metatype as Type | null);
      if (type?.prototype === undefined || seen.has(instance ?? type)) continue;
      seen.add(instance ?? type);
      yield {
        instance,
        type,
        isStatic: wrapper.isDependencyTreeStatic() && !wrapper.isTransient,
        injected: isInjected(type),
      };
    }
  }
}

function classOf(instance: object | null | undefined): Type | undefined {
  const { constructor } = instance ?? {};
  return typeof instance === 'object' && constructor !== Object ? (constructor as Type) : undefined;
}

function isInjected(type: Type): boolean {
  const keys = [CONSTRUCTOR_PARAMETERS, INJECTED_PARAMETERS, INJECTED_PROPERTIES];
  const lists = keys.map((key) => Reflect.getMetadata(key, type) as unknown[] | undefined);
  return type.length > 0 || lists.some((list) => (list?.length ?? 0) > 0);
}

/** Messages about methods with the same name, which could not be told apart in metrics. */
function namesakes(found: readonly Found[]): string[] {
  const byName = new Map(found.map(({ name, definition }) => [name, definition]));
  return found
    .filter(({ name, definition }) => byName.get(name) !== definition)
    .map(({ name, definition }) => {
      const files = [definition, byName.get(name)!].map(({ file }) => file ?? 'no file');
      return `two @CpuBound() methods are called "${name}" (${files.join(' and ')}); give one a name of its own: @CpuBound({ name: '…' })`;
    });
}

/** Why a method cannot run in a thread, with the remedy; `undefined` if no reason is known. */
export function refusalOf(subject: Subject): string | undefined {
  const { name, definition, type, isStatic, injected, hasModule } = subject;
  const owner = definition.owner.constructor;
  if (owner !== type) {
    return (
      `${name} is inherited from ${owner.name}, and a thread would instantiate ${owner.name} instead of ${type.name}; ` +
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
  const method = (type.prototype as Record<string, object>)[definition.method]!;
  if (Reflect.getMetadata(SSE, method)) {
    return `${name} is an @Sse() stream, which cannot come from a thread; compute each event in a @CpuBound() method of a provider`;
  }
  if (!isStatic) {
    return (
      `${name} belongs to a request-scoped or transient provider (by its own scope or that of a dependency); ` +
      `move the method to a provider of default scope, and pass what it needs from the request as arguments`
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
  const types = (Reflect.getMetadata(CONSTRUCTOR_PARAMETERS, type) ?? []) as (Type | undefined)[];
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
      `${name} is declared in ${file}, which starts the app: a thread that imports it would start the app again; ` +
      `declare the class in a file of its own, or start the app with ClusterModule.bootstrap()`
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

/** Why a thread cannot import the file that calls `forRoot()` with `offload.module`; `undefined` if a thread can. */
export function refusalOfModule(
  name: string,
  file: string | undefined,
  { threads, mainFile }: Situation,
): string | undefined {
  if (!threads || file === undefined || file !== mainFile) return undefined;
  return (
    `offload.module (${name}) is passed to forRoot() in ${file}, which starts the app: a thread that imports it would start the app again; ` +
    `move the module that imports ClusterModule to a file of its own, or start the app with ClusterModule.bootstrap()`
  );
}

/** An error for each method that names a queue, if the app has no remote runner. */
export function refusalsOfQueues(
  found: readonly Found[],
  remote: RemoteRunner | undefined,
): string[] {
  if (remote !== undefined) return [];
  return found.flatMap(({ name, definition: { options } }) =>
    options.queue === undefined
      ? []
      : `${name} has queue: "${options.queue}", and the app has no queues; add ClusterQueueModule.forRoot({ connection }) of @nestjs-cluster/bullmq to the imports of its root module, or take queue away`,
  );
}
