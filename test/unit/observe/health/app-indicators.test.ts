import { describe, expect, it } from 'vitest';
import { ClusterConfigurationError } from '../../../../src/contract/errors/index.js';
import { appIndicators } from '../../../../src/observe/health/app-indicators.js';

type Entries = Parameters<typeof appIndicators>[0];
type Container = Parameters<typeof appIndicators>[1];

const UP = { found: { status: 'up' } } as const;

/** A container that has these instances by class; `SCOPED` is one that it makes for each request. */
const SCOPED = Symbol('scoped');
function containerOf(instances: readonly (readonly [unknown, unknown])[] = []): Container {
  const map = new Map(instances);
  return {
    introspect: (type: unknown) => {
      if (!map.has(type)) throw new Error('Nest could not find the given element');
      return {};
    },
    get: (type: unknown) => {
      if (map.get(type) === SCOPED) throw new Error('marked as a scoped provider');
      return map.get(type);
    },
  } as unknown as Container;
}

function refusal(entries: Entries, container = containerOf()): string {
  try {
    appIndicators(entries, container);
  } catch (error) {
    expect(error).toBeInstanceOf(ClusterConfigurationError);
    return (error as Error).message;
  }
  throw new Error('the indicators were accepted');
}

class DatabaseHealthIndicator {
  constructor(readonly report: typeof UP) {}
  check() {
    return this.report;
  }
}

describe('an indicator of the app', () => {
  it('may be a function of any kind', async () => {
    const self = {
      report: UP,
      method() {
        return this.report;
      },
    };
    const entries: Entries = [
      () => UP,
      async () => UP,
      function () {
        return UP;
      },
      self.method.bind(self),
    ];
    const found = appIndicators(entries, containerOf());
    for (const { check } of found) expect(await check()).toBe(UP);
  });

  it('may be a class, of which the instance of the app is asked', () => {
    const container = containerOf([[DatabaseHealthIndicator, new DatabaseHealthIndicator(UP)]]);
    const [found] = appIndicators([DatabaseHealthIndicator], container);
    expect(found!.check()).toBe(UP);
  });

  it('may be a class of which only the instance has check()', () => {
    class Arrow {
      check = () => UP;
    }
    const [found] = appIndicators([Arrow], containerOf([[Arrow, new Arrow()]]));
    expect(found!.check()).toBe(UP);
  });

  it('may be a class as compilers for old engines make one', () => {
    function Old() {}
    Old.prototype['check'] = () => UP;
    const entry = Old as unknown as Entries[number];
    const [found] = appIndicators([entry], containerOf([[Old, { check: () => UP }]]));
    expect(found!.check()).toBe(UP);
    expect(refusal([entry])).toContain('Old is provided by no module');
  });
});

describe('the name of an indicator of the app', () => {
  const named = (name: string): Entries[number] => {
    const indicator = () => UP;
    return Object.defineProperty(indicator, 'name', { value: name });
  };

  it.each([
    ['DatabaseHealthIndicator', 'database'],
    ['Database', 'database'],
    ['pingDatabase', 'pingDatabase'],
    ['HTTPHealthIndicator', 'http'],
    ['DBPoolHealthIndicator', 'dbPool'],
    ['S3HealthIndicator', 's3'],
    ['A', 'a'],
    ['', 'indicator2'],
    ['HealthIndicator', 'indicator2'],
    ['bound ping', 'indicator2'],
    ['[ping]', 'indicator2'],
    ['__proto__', 'indicator2'],
  ])('%j is %s', (name, expected) => {
    const [, found] = appIndicators([() => UP, named(name)], containerOf());
    expect(found!.name).toBe(expected);
  });

  it('is that of a class', () => {
    const container = containerOf([[DatabaseHealthIndicator, new DatabaseHealthIndicator(UP)]]);
    expect(appIndicators([DatabaseHealthIndicator], container)[0]!.name).toBe('database');
  });
});

describe('a class is refused', () => {
  it('that no module provides', () => {
    expect(refusal([DatabaseHealthIndicator])).toBe(
      'health.indicators cannot work here: DatabaseHealthIndicator is provided by no module of the app; add it to the providers of one',
    );
  });

  it('of which there is one for each request', () => {
    const container = containerOf([[DatabaseHealthIndicator, SCOPED]]);
    const message = refusal([DatabaseHealthIndicator], container);
    expect(message).toMatch(/DatabaseHealthIndicator has an instance for each request.*; give it/);
  });

  it.each([{}, null, undefined, { check: 1 }])('whose instance is %j', (instance) => {
    class Mute {
      declare check: () => typeof UP;
    }
    expect(refusal([Mute], containerOf([[Mute, instance]]))).toMatch(/Mute has no check\(\)/);
  });

  it('together with the others, each once', () => {
    class Other extends DatabaseHealthIndicator {}
    const message = refusal([DatabaseHealthIndicator, () => UP, Other, Other]);
    expect(message.split(' | ')).toHaveLength(2);
    expect(message.match(/Other is provided/g)).toHaveLength(1);
  });
});
