import { Inject, Injectable, type Type } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { type CpuBoundDefinition, definitionsOf } from './cpu-bound.decorator.js';
import { refusalOf, type Situation } from './refusals.js';

/** A method that is to be offloaded, with the app's instance of its class. */
export interface Found {
  readonly name: string;
  readonly definition: CpuBoundDefinition;
  readonly instance: object;
  /** Whether Nest injects something into the constructor or a property. */
  readonly injected: boolean;
}

/** A controller or provider. */
export interface Member {
  readonly type: Type;
  /** Whether the class has one instance, which is created at start. */
  readonly isStatic: boolean;
  readonly injected: boolean;
  readonly instance: object | null | undefined;
}

// Metadata keys of Nest, the same in 11 and 12.
const CONSTRUCTOR_PARAMETERS = 'design:paramtypes';
const INJECTED_PARAMETERS = 'self:paramtypes';
const INJECTED_PROPERTIES = 'self:properties_metadata';

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
