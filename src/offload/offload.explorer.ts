import { Inject, Injectable, type Type } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { type CpuBoundDefinition, definitionsOf } from './cpu-bound.metadata.js';
import { refusalOf, type Situation, type Subject } from './task/refusals.js';

/** A method that is to be offloaded, with the app's instance of its class. */
export interface Found {
  readonly name: string;
  readonly definition: CpuBoundDefinition;
  readonly className: string;
  readonly instance: object;
  /** Whether Nest injects something into the constructor or a property. */
  readonly injected: boolean;
}

/** The `@CpuBound()` methods of an app. */
export interface Exploration {
  readonly found: readonly Found[];
  /** Messages about methods that cannot be offloaded, each with a remedy. */
  readonly refusals: readonly string[];
}

/** A controller or provider. */
export type Member = Pick<Subject, 'type' | 'isStatic' | 'injected'> & {
  readonly isController: boolean;
  readonly instance: object | null | undefined;
};

// Metadata keys of Nest, the same in 11 and 12.
const CONSTRUCTOR_PARAMETERS = 'design:paramtypes';
const INJECTED_PARAMETERS = 'self:paramtypes';
const INJECTED_PROPERTIES = 'self:properties_metadata';

/** Finds the `@CpuBound()` methods of all controllers and providers. */
@Injectable()
export class OffloadExplorer {
  constructor(@Inject(DiscoveryService) private readonly discovery: DiscoveryService) {}

  explore(situation: Situation): Exploration {
    const found: Found[] = [];
    const refusals: string[] = [];
    for (const { instance, ...member } of this.members()) {
      const { type } = member;
      for (const definition of definitionsOf(type.prototype as object)) {
        const name = definition.options.name ?? `${type.name}.${definition.method}`;
        const subject: Subject = { ...member, name, definition, ...situation };
        const refusal = refusalOf(subject);
        if (refusal !== undefined) refusals.push(refusal);
        else if (instance) found.push({ ...subject, className: type.name, instance });
      }
    }
    return { found, refusals: [...new Set([...refusals, ...namesakes(found)])] };
  }

  /** The controllers and providers with a class, each instance once. */
  *members(): Generator<Member> {
    const seen = new Set<unknown>();
    const controllers = this.discovery.getControllers();
    for (const wrapper of [...controllers, ...this.discovery.getProviders()]) {
      // A factory may create an instance of any class. A provider that is not created at start has
      // only a class.
      const instance = wrapper.instance as object | null | undefined;
      const type = classOf(instance) ?? (wrapper.metatype as Type | null);
      if (type?.prototype === undefined || seen.has(instance ?? type)) continue;
      seen.add(instance ?? type);
      yield {
        instance,
        type,
        isController: controllers.includes(wrapper),
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
  const lists = [CONSTRUCTOR_PARAMETERS, INJECTED_PARAMETERS, INJECTED_PROPERTIES].map(
    (key) => (Reflect.getMetadata(key, type) as unknown[] | undefined)?.length ?? 0,
  );
  return type.length > 0 || lists.some((length) => length > 0);
}

/** Messages about methods with the same name, which could not be told apart in metrics. */
function namesakes(found: readonly Found[]): string[] {
  const byName = new Map(found.map(({ name, definition }) => [name, definition]));
  return found
    .filter(({ name, definition }) => byName.get(name) !== definition)
    .map(({ name, definition }) => {
      const places = [definition, byName.get(name)!].map(({ site }) => site?.place ?? 'no file');
      return `two @CpuBound() methods are called "${name}" (${places.join(' and ')}); give one a name of its own: @CpuBound({ name: '…' })`;
    });
}
