import type { AppMethod, MethodList } from '../../contract/snapshot/index.js';
import {
  type CpuBoundDefinition,
  definitionsOf,
  type Member,
  type Method,
  refusalOf,
} from '../../offload/index.js';
import { metadataOf, methodsOf, routesOf } from './controller-routes.js';

/** The names of Nest's `RequestMethod`, by number, the same in 11 and 12. */
const VERBS = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'ALL', 'OPTIONS', 'HEAD', 'SEARCH'];

type Listed = readonly [list: string, ...functions: unknown[]];

/**
 * Lists the methods of all controllers and providers for the `advise` command. Only reads, because
 * the watchdog calls it while any code of the app may run.
 *
 * @param hasModule whether the app has an `offload.module`.
 * @returns the {@link MethodList} as JSON, and the functions that it numbers.
 */
export function listMethods(members: Iterable<Member>, hasModule: boolean): Listed {
  const numbers = new Map<unknown, number>();
  const numberOf = (code: unknown): number => {
    if (!numbers.has(code)) numbers.set(code, numbers.size);
    return numbers.get(code)!;
  };
  const methods = [...members].flatMap((member) =>
    definitionsIn(member).map(([definition, wrapper]): AppMethod => {
      const { type } = member;
      const isCandidate = definition.site === UNKNOWN;
      const name = `${type.name}.${definition.method}`;
      const facts = { hasModule, threads: false, mainFile: undefined };
      const subject = { ...member, ...facts, name, definition, isCandidate };
      return {
        name,
        route: member.isController ? routeOf(member, wrapper) : null,
        cpuBound: !isCandidate,
        refusal: refusalOf(subject) ?? null,
        code: numberOf(definition.body),
        declaredBy: numberOf(definition.owner.constructor),
      };
    }),
  );
  const functions = [...numbers.keys()];
  const list: MethodList = { methods, extents: functions.map(extentOf) };
  return [JSON.stringify(list), ...functions];
}

/** Stands for the place of a method without `@CpuBound()`, which has noted no place. */
const UNKNOWN = { file: '', place: '' };

/** The methods of a class, also inherited ones, each with the function that callers get. */
function definitionsIn({ type }: Member): [CpuBoundDefinition, Method][] {
  const decorated = definitionsOf(type.prototype as object);
  return methodsOf(type).map(([method, value, owner]) => {
    const body = value as Method;
    const bare = { owner, method, options: {}, body, site: UNKNOWN };
    return [decorated.find((each) => each.method === method) ?? bare, body];
  });
}

function extentOf(code: unknown): MethodList['extents'][number] {
  const lines = Function.prototype.toString.call(code).split('\n');
  return [lines.length - 1, lines.at(-1)!.length];
}

/** The first route of a handler; `null` if the method is not a handler. */
function routeOf({ type }: Member, method: object): string | null {
  const [path] = routesOf(type, method);
  const verb = metadataOf('method', method);
  return path === undefined ? null : `${VERBS[Number(verb)] ?? 'ALL'} ${path}`;
}
