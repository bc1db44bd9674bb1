import { types } from 'node:util';
import { type AppView, type Check, classOf, type Member, nameOf } from '../finding.js';

export const inProcessEvents: Check = {
  name: 'in-process-events',
  remedy:
    "provide ClusterPubSub of '@nestjs-cluster/shared/events' in its place; or, beyond one machine, one in Redis",
  look: (app) =>
    [...pubSubsOf(app).values()].map((where) => ({
      where,
      problem: 'a published event reaches only the subscribers in the same worker',
    })),
};

/** The places of each PubSub of graphql-subscriptions: a provider, or a field of a provider or controller. */
function pubSubsOf({ providers, controllers }: AppView): ReadonlyMap<unknown, string> {
  const places = new Map<unknown, string>();
  for (const member of [...providers, ...controllers]) {
    if (isPubSub(member.instance)) places.set(member.instance, nameOf(member));
  }
  for (const member of [...providers, ...controllers]) {
    for (const value of fieldsOf(member)) {
      if (isPubSub(value) && !places.has(value)) places.set(value, nameOf(member));
    }
  }
  return places;
}

/** Values of own fields. Getters and proxies are not run. */
function fieldsOf({ instance }: Member): unknown[] {
  if (types.isProxy(instance) || Array.isArray(instance) || ArrayBuffer.isView(instance)) return [];
  return Object.values(Object.getOwnPropertyDescriptors(Object(instance))).map(
    ({ value }) => value as unknown,
  );
}

/** Checks the methods too, because several libraries have a class of this name. */
function isPubSub(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || types.isProxy(value)) return false;
  const iterates = 'asyncIterableIterator' in value || 'asyncIterator' in value;
  if (!iterates || !('publish' in value)) return false;
  for (let each: unknown = value; each !== null; each = Object.getPrototypeOf(each) as unknown) {
    if (classOf(each) === 'PubSub') return true;
  }
  return false;
}
