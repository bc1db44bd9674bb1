import { metadataOf } from '../../endpoints/controller-routes.js';
import {
  type AppView,
  classOf,
  extendsOneOf,
  fieldsOf,
  type Member,
  methodNamesOf,
  nameOfMember,
} from '../app-view.js';
import { type Check, listed, type Observation } from '../finding.js';

/** The metadata key that `@Sse()` sets on a method. */
const SSE = '__sse__';

/** Classes of this package that deliver events to all workers. */
const OURS: ReadonlySet<string> = new Set(['ClusterEvents', 'ClusterPubSub']);

/** The class of graphql-subscriptions. */
const PUB_SUB: ReadonlySet<string> = new Set(['PubSub']);

/** Classes of Node, eventemitter2 and RxJS. Subclasses do not count: they may receive events of other processes. */
const EMITTERS: ReadonlySet<string> = new Set([
  'EventEmitter',
  'EventEmitter2',
  'Subject',
  'BehaviorSubject',
  'ReplaySubject',
]);

/** Classes of Nest whose subjects concern only their own process. */
const OF_NEST: ReadonlySet<string> = new Set([
  'ClientProxy',
  'CommandBus',
  'ConfigService',
  'HttpAdapterHost',
  'QueryBus',
]);

/** Names of subjects that end a stream, as in `takeUntil(this.destroyed$)`. */
const ENDING = /destroy|clos(e|ing)|shutdown|stop|abort|unsubscribe/i;

export const inProcessEvents: Check = {
  name: 'in-process-events',
  remedy:
    'provide ClusterPubSub of @nestjs-cluster/shared/events in its place; or, beyond one machine, one in Redis',
  look: (app) => [...pubSubsOf(app), ...streamsOf(app)],
};

function pubSubsOf(app: AppView): Observation[] {
  const members = [...app.providers, ...app.controllers];
  const places = new Map<unknown, string>();
  for (const member of members.filter(({ instance }) => isPubSub(instance))) {
    places.set(member.instance, `${nameOfMember(member)} (${member.module})`);
  }
  addFields(places, members, (value) => isPubSub(value));
  return observe(places, {
    problem: 'what one worker publishes reaches the subscribers of that worker alone',
  });
}

/** Checks the methods too, because several libraries have a class of this name. */
function isPubSub(value: unknown): boolean {
  if (!extendsOneOf(value, PUB_SUB)) return false;
  const pubSub = value as object;
  return 'publish' in pubSub && ('asyncIterableIterator' in pubSub || 'asyncIterator' in pubSub);
}

/**
 * The objects that a route may stream: fields of its controller and of the controller's providers.
 * A route whose controller or providers hold a class of this package gets events of all workers.
 */
function streamsOf(app: AppView): Observation[] {
  const providers = new Map(app.providers.map((provider) => [provider.instance, provider]));
  const members = app.controllers.filter(hasStream).flatMap((controller) => {
    const held = fieldsOf(controller.instance).flatMap(([, value]) => providers.get(value) ?? []);
    const reached = [controller, ...held];
    if (reached.some(holdsOurs)) return [];
    return reached.filter(({ instance }) => !extendsOneOf(instance, OF_NEST));
  });
  const places = new Map<unknown, string>();
  addFields(places, members, (value, field) => EMITTERS.has(classOf(value)) && !ENDING.test(field));
  return observe(places, {
    problem: 'what one worker emits reaches the @Sse() clients of that worker alone',
    remedy:
      'emit it with ClusterEvents of @nestjs-cluster/shared/events, whose @OnEvent() handlers run in every worker; or, beyond one machine, by a broker',
  });
}

function holdsOurs({ instance }: Member): boolean {
  const values = [instance, ...fieldsOf(instance).map(([, value]) => value)];
  return values.some((value) => extendsOneOf(value, OURS));
}

function hasStream(controller: Member): boolean {
  return methodNamesOf(controller, (method) => metadataOf(SSE, method) === true).length > 0;
}

/** Adds the place of each matching object once, even if several fields hold it. */
function addFields(
  places: Map<unknown, string>,
  members: readonly Member[],
  isOne: (value: object, field: string) => boolean,
): void {
  for (const member of members) {
    for (const [field, value] of fieldsOf(member.instance)) {
      if (places.has(value) || !isOne(value, field)) continue;
      places.set(value, `${nameOfMember(member)}.${field} (${member.module})`);
    }
  }
}

function observe(
  places: ReadonlyMap<unknown, string>,
  seen: Omit<Observation, 'where'>,
): Observation[] {
  return places.size === 0 ? [] : [{ where: listed([...places.values()]), ...seen }];
}
