import { Inject, Injectable, type Type } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { type CpuBoundDefinition, definitionsOf } from './cpu-bound.decorator.js';
import type { RemoteRunner } from './run/remote-runner.js';

/** A method to offload, with the app's instance of its class. */
export interface Found {
  readonly name: string;
  readonly definition: CpuBoundDefinition;
  readonly instance: object;
  /** Whether the constructor takes arguments or Nest injects properties. */
  readonly injected: boolean;
}

interface Member {
  readonly type: Type;
  /** Whether the class has a single instance, created at startup. */
  readonly isStatic: boolean;
  readonly injected: boolean;
  readonly instance: object | null | undefined;
}

/** Conditions that are the same for all methods of an app. */
export interface Situation {
  /** Whether the option `offload.module` is set. */
  readonly hasModule: boolean;
  /** Whether calls run in threads. Threads import the files of the classes. */
  readonly threads: boolean;
  /** The program's main file, if importing it in a thread would start the app again. */
  readonly mainFile: string | undefined;
}

/** The data about a `@CpuBound()` method that is available without a thread. */
export type Subject = Situation & Omit<Member & Found, 'instance'>;

// Nest's metadata keys, the same in 11 and 12.
const CONSTRUCTOR_PARAMETERS = 'design:paramtypes';
const INJECTED_PARAMETERS = 'self:paramtypes';
const INJECTED_PROPERTIES = 'self:properties_metadata';
const ROUTE_ARGUMENTS = '__routeArguments__';
const SSE = '__sse__';

/** Values of these decorators cannot be cloned. Nest's metadata keys start with an index into this list. */
const OF_THE_CONNECTION = ['@Req()', '@Res()', '@Next()'] as const;

@Injectable()
export class OffloadExplorer {
  constructor(@Inject(DiscoveryService) private readonly discovery: DiscoveryService) {}

  /** Finds methods that can be offloaded. Other methods get a message in `refusals`. */
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

  /** All controllers and providers that have a class. Each instance occurs once. */
  *members(): Generator<Member> {
    const seen = new Set<unknown>();
    for (const wrapper of [...this.discovery.getControllers(), ...this.discovery.getProviders()]) {
      // A factory can return an instance of any class, so the instance's class takes precedence.
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

/** Messages about methods with the same name, which metrics could not distinguish. */
function namesakes(found: readonly Found[]): string[] {
  const byName = new Map(found.map(({ name, definition }) => [name, definition]));
  return found
    .filter(({ name, definition }) => byName.get(name) !== definition)
    .map(({ name, definition }) => {
      const files = [definition, byName.get(name)!].map(({ file }) => file ?? 'no file');
      return `two @CpuBound() methods have the name "${name}" (${files.join(' and ')}); rename one with @CpuBound({ name: '…' })`;
    });
}

/** Why a method cannot run in a thread, with a remedy. `undefined` if no problem is known. */
export function refusalOf(subject: Subject): string | undefined {
  const { name, definition, type, isStatic, injected, hasModule } = subject;
  const owner = definition.owner.constructor;
  if (owner !== type) {
    return (
      `${name} is inherited from ${owner.name}, so a thread would instantiate ${owner.name} instead of ${type.name}; ` +
      `override it in ${type.name} with @CpuBound() and call super.${definition.method}()`
    );
  }
  const parameter = connectionParameter(subject);
  if (parameter !== undefined) {
    return (
      `${name} takes ${parameter}, which cannot be sent to a thread; ` +
      `use @Param(), @Query(), @Body() or @Headers(), and let Nest send the response`
    );
  }
  const method = (type.prototype as Record<string, object>)[definition.method]!;
  if (Reflect.getMetadata(SSE, method)) {
    return `${name} is an @Sse() stream, which cannot run in a thread; compute each event in a @CpuBound() method of a provider`;
  }
  if (!isStatic) {
    return (
      `${name} belongs to a request-scoped or transient provider (through its own scope or a dependency's); ` +
      `move the method to a provider in the default scope, and pass request data as arguments`
    );
  }
  if (injected && !hasModule) {
    return (
      `${name} needs an instance of ${type.name}, which has constructor arguments or injected properties, so a thread cannot create it; ` +
      `move the method to its own provider without a constructor: @Injectable() export class ${type.name}Work { @CpuBound() ${definition.method}(…) { … } }; ` +
      `or provide the dependencies in a module for the threads: @Module({ providers: [${dependenciesOf(type)}] }) export class ThreadModule {}, and ClusterModule.forRoot({ offload: { module: ThreadModule } }); with forRootAsync(), set offload beside useFactory`
    );
  }
  return subject.threads ? refusalOfFile(subject) : undefined;
}

/** The classes of the constructor's parameters. `…` for an interface, or a type that the compiler did not emit. */
function dependenciesOf(type: Type): string {
  const types = (Reflect.getMetadata(CONSTRUCTOR_PARAMETERS, type) ?? []) as (Type | undefined)[];
  const names = types.map((each) => (each === Object || !each?.name ? '…' : each.name));
  return names.join(', ') || '…';
}

function refusalOfFile({ name, definition, mainFile }: Subject): string | undefined {
  const { file } = definition;
  if (file === undefined) {
    return (
      `${name} is declared in evaluated code without a file, so a thread cannot import it; ` +
      `with webpack or rspack, set devtool: 'source-map' instead of an "eval" devtool, or set CLUSTER_OFFLOAD=inline`
    );
  }
  if (file === mainFile) {
    return (
      `${name} is declared in ${file}, which starts the app: a thread importing it would start the app again; ` +
      `move the class to its own file, or start the app with ClusterModule.bootstrap()`
    );
  }
  return undefined;
}

function connectionParameter({ type, definition }: Subject): string | undefined {
  const parameters = Reflect.getMetadata(ROUTE_ARGUMENTS, type, definition.method) as
    Record<string, unknown> | undefined;
  // Keys are `type:index`. The type is a number unless the decorator is a custom one.
  const kinds = Object.keys(parameters ?? {}).map(
    (key) => OF_THE_CONNECTION[Number(key.split(':')[0])],
  );
  return kinds.find((kind) => kind !== undefined);
}

/** Why a thread cannot import the file that passes `offload.module` to `forRoot()`. `undefined` if it can. */
export function refusalOfModule(
  name: string,
  file: string | undefined,
  { threads, mainFile }: Situation,
): string | undefined {
  if (!threads || file === undefined || file !== mainFile) return undefined;
  return (
    `offload.module (${name}) is passed to forRoot() in ${file}, which starts the app: a thread importing it would start the app again; ` +
    `move the module that imports ClusterModule to its own file, or start the app with ClusterModule.bootstrap()`
  );
}

/** A message for each method with a `queue`, if the app has no remote runner. */
export function refusalsOfQueues(
  found: readonly Found[],
  remote: RemoteRunner | undefined,
): string[] {
  if (remote !== undefined) return [];
  return found.flatMap(({ name, definition: { options } }) =>
    options.queue === undefined
      ? []
      : `${name} has the option queue: "${options.queue}", but the app has no queues; import ClusterQueueModule.forRoot({ connection }) from @nestjs-cluster/bullmq in the root module, or drop the option`,
  );
}
