import { describe, expect, it } from 'vitest';
import {
  foreignVersionOf,
  isOurs,
  parsePrimaryMessage,
  parseWorkerMessage,
  type PrimaryMessage,
  reportError,
  seal,
  type WorkerMessage,
} from '../../../../src/contract/ipc/index.js';
import { MAX_METRICS_BODY_LENGTH } from '../../../../src/contract/snapshot/index.js';
import type { ClusterSnapshot } from '../../../../src/contract/snapshot/index.js';
import { PRIMARY } from '../../support/fake-cluster.js';
import { STATS } from '../../support/fake-worker.js';

type OfType<M extends { type: string }> = { readonly [T in M['type']]: M & { type: T } };

const ERROR = { name: 'TypeError', message: 'x is not a function', stack: 'at x', code: 'EX' };

const FINGERPRINT = { method: 'GET', route: '/cats/:id', url: 'Xp1', path: '/cats/7' };

const WORKER_MESSAGES: OfType<WorkerMessage> = {
  'listen-request': { type: 'listen-request' },
  ready: {
    type: 'ready',
    url: 'http://127.0.0.1:3000',
    endpoints: ['/health', '/metrics'],
    minReady: 0.5,
    verifiable: true,
  },
  'boot-failed': { type: 'boot-failed', phase: 'init', error: ERROR },
  fatal: { type: 'fatal', error: ERROR, abort: false },
  suspects: { type: 'suspects', certain: true, suspects: [FINGERPRINT] },
  flight: { type: 'flight', n: 2, began: FINGERPRINT, ended: [1] },
  trial: { type: 'trial', id: 1, lived: true },
  blocked: {
    type: 'blocked',
    forMs: 1_500,
    requests: [{ method: 'GET', path: '/spin', forMs: 1_498.5 }],
    frames: ['spin (/app/main.js:3:7)', 'handle (/app/main.js:9:1)'],
    profile: '/tmp/hang.cpuprofile',
  },
  resumed: { type: 'resumed' },
  unprofiled: { type: 'unprofiled', problem: 'no space left on device' },
  stack: {
    type: 'stack',
    id: 8,
    blockedForMs: null,
    requests: [{ method: 'GET', path: '/spin', forMs: 1_498.5 }],
    frames: ['spin (/app/main.js:3:7)'],
    answered: true,
  },
  checked: { type: 'checked', id: 4, healthy: false, detail: 'database: connection refused' },
  verified: { type: 'verified', error: ERROR },
  'reload-request': { type: 'reload-request', id: 5 },
  'scale-request': { type: 'scale-request', id: 6, workers: 3 },
  'restart-request': { type: 'restart-request', id: 7, slot: 1 },
  'replace-request': { type: 'replace-request', reason: 'held by native code' },
  'lead-request': { type: 'lead-request' },
  leads: { type: 'leads', seq: 8 },
  resigned: { type: 'resigned', at: 12_345.5 },
  jobs: { type: 'jobs', running: ['Report.send'], done: 'Cache.warm' },
  warning: { type: 'warning', message: 'odd' },
  pong: { type: 'pong', seq: 7, stats: STATS, debugged: false },
  'hub-request': { type: 'hub-request', id: 7 },
  subscribe: { type: 'subscribe', events: ['worker-exit', 'an-event-of-tomorrow'] },
  leaving: { type: 'leaving' },
  drained: {
    type: 'drained',
    report: {
      destroyedConnections: 1,
      abortedRequests: 2,
      destroyedWebSockets: 1,
      hookError: 'no',
    },
  },
  'snapshot-request': { type: 'snapshot-request', id: 1, stats: STATS },
  'collect-request': { type: 'collect-request', id: 2, stats: STATS, ageMs: 0, body: '[]' },
  metrics: { type: 'metrics', asked: true, stats: STATS, ageMs: 0, body: '[]' },
  load: { type: 'load', requests: 10, connections: 2, utilization: 0.5 },
  folded: { type: 'folded', epoch: 0, count: 9, body: '[]' },
};

const SNAPSHOT: ClusterSnapshot = {
  balancing: 'shared',
  ports: [],
  desired: 1,
  ready: 1,
  minReady: 1,
  generation: 0,
  degraded: 0,
  reloads: { completed: 0, aborted: 0, reverted: 0 },
  dismissed: [],
  workers: [],
  primary: PRIMARY,
};

const PRIMARY_MESSAGES: OfType<PrimaryMessage> = {
  listen: { type: 'listen', target: { kind: 'tcp', port: 3000, host: '::' } },
  'listen-refused': { type: 'listen-refused', error: ERROR },
  adopt: { type: 'adopt', slot: 1 },
  release: { type: 'release', slot: 1 },
  ping: { type: 'ping', seq: 1 },
  lead: { type: 'lead', seq: 1, until: 900, since: 0, busy: ['Report.send'], done: [] },
  'report-load': { type: 'report-load' },
  'give-away': { type: 'give-away', ratio: 0.25 },
  drain: { type: 'drain', cause: 'shutdown' },
  released: { type: 'released' },
  force: { type: 'force' },
  quarantine: { type: 'quarantine', watch: true, entries: [] },
  check: { type: 'check', id: 3 },
  verify: { type: 'verify' },
  reloaded: {
    type: 'reloaded',
    id: 4,
    result: { outcome: 'aborted', generation: 2, reason: 'worker=0 gen=2: exited with code 1' },
  },
  restarted: {
    type: 'restarted',
    id: 5,
    result: { outcome: 'aborted', slot: 1, reason: 'it died' },
  },
  scaled: { type: 'scaled', id: 5, snapshot: SNAPSHOT },
  'scale-refused': {
    type: 'scale-refused',
    id: 6,
    address: 'http://127.0.0.1:3002',
    cause: { name: 'Error', message: 'bind EADDRINUSE', code: 'EADDRINUSE' },
  },
  snapshot: { type: 'snapshot', id: 1, snapshot: SNAPSHOT },
  hub: { type: 'hub', id: 7, path: '/run/user/1000/nestjs-cluster/1.ab.hub', token: 'secret' },
  'hub-refused': { type: 'hub-refused', id: 8, reason: 'no thread is to be had' },
  collect: { type: 'collect' },
  event: { type: 'event', name: 'started', event: { ready: 2 }, missed: 0 },
  fold: { type: 'fold', epoch: 0, bodies: ['[]'] },
  collected: {
    type: 'collected',
    id: 1,
    snapshot: SNAPSHOT,
    workers: [{ slot: 0, ageMs: 1, body: '{}' }],
    retired: ['{}'],
  },
};

/** As it arrives: what JSON makes of it. */
const onTheWire = (message: unknown): unknown => JSON.parse(JSON.stringify(message));

type Path = readonly (string | number)[];

/** The paths of all fields of `value`, also of fields that are objects. */
function pathsOf(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const at = [...path, Array.isArray(value) ? Number(key) : key];
    return [at, ...pathsOf(inner, at)];
  });
}

/** A copy of `message` in which `change` was made to what holds the field at `path`. */
function changed(
  message: unknown,
  path: Path,
  change: (parent: Record<string | number, unknown>, key: string | number) => void,
): unknown {
  const copy = structuredClone(message);
  const parent = path
    .slice(0, -1)
    .reduce<unknown>((value, key) => (value as Record<string, unknown>)[key], copy);
  change(parent as Record<string | number, unknown>, path.at(-1)!);
  return copy;
}

const NULLABLE = new Set([
  'ready.url',
  'drained.report.hookError',
  'checked.detail',
  'verified.error',
  'stack.blockedForMs',
]);
const OPTIONAL = new Set([
  'error.stack',
  'error.code',
  'stats.droppedConnectionsTotal',
  'stats.threadUtilization',
]);
const FIELDS = Object.values(WORKER_MESSAGES).flatMap((message) => {
  const sealed = onTheWire(seal(message));
  return pathsOf(sealed).map((path) => ({
    type: message.type,
    field: path.join('.'),
    path,
    sealed,
  }));
});
/** Fields that only inform: without them, or with nonsense in them, a message says the rest. */
const INFORMS =
  /^(?:pong\.(?:seq|debugged)|ready\.verifiable|[^.]+\.(?:stats|ageMs)(?:\..*)?|boot-failed\.phase|drained\.report\.(?!hookError).*)$/;
/** Fields that may be missing, and not be wrong. */
const MAY_MISS = new Set([
  'jobs.done',
  'ready.url',
  'blocked.profile',
  'flight.began',
  'ready.endpoints',
  'ready.minReady',
  'checked.detail',
  'drained.report.hookError',
]);
const informs = ({ type, field }: { type: string; field: string }) =>
  INFORMS.test(`${type}.${field}`);
const isElement = ({ path }: { path: Path }) => typeof path.at(-1) === 'number';

const no = () => {
  throw new Error('no');
};

describe('a message of a worker', () => {
  it.each(Object.values(WORKER_MESSAGES))('passes as it was sent: $type', (message) => {
    expect(parseWorkerMessage(onTheWire(seal(message)))).toEqual(message);
  });

  it('passes with an error that has neither stack nor code', () => {
    const error = { name: 'Error', message: 'x' };
    const message = { type: 'fatal', error, abort: true } as const;
    expect(parseWorkerMessage(onTheWire(seal(message)))).toEqual(message);
  });

  it('passes with a drain that ended well', () => {
    const report = { ...WORKER_MESSAGES.drained.report, hookError: null };
    expect(parseWorkerMessage(onTheWire(seal({ type: 'drained', report })))).toEqual({
      type: 'drained',
      report,
    });
  });

  it.each(
    FIELDS.filter(
      (field) =>
        !isElement(field) &&
        !OPTIONAL.has(field.field) &&
        !informs(field) &&
        !MAY_MISS.has(`${field.type}.${field.field}`),
    ),
  )('is dropped without $field: $type', ({ sealed, path }) => {
    expect(
      parseWorkerMessage(
        changed(sealed, path, (parent, key) => {
          delete parent[key];
        }),
      ),
    ).toBeUndefined();
  });

  it.each(FIELDS.filter((field) => !informs(field)))(
    'is dropped where $field has a wrong type: $type',
    ({ type, sealed, path, field }) => {
      for (const wrong of [null, {}, [[]], Symbol.iterator, () => 0, NaN, undefined]) {
        if (NULLABLE.has(`${type}.${field}`) && wrong === null) continue;
        if (OPTIONAL.has(field) && wrong === undefined) continue;
        if (MAY_MISS.has(`${type}.${field}`) && wrong === undefined) continue;
        // A drain of which nothing is known.
        if (field === 'report' && typeof wrong === 'object' && wrong !== null) continue;
        expect(
          parseWorkerMessage(
            changed(sealed, path, (holder, key) => {
              holder[key] = wrong;
            }),
          ),
        ).toBeUndefined();
      }
    },
  );

  const NUMBERS = FIELDS.filter(
    ({ type, sealed, path, field }) =>
      field !== 'v' &&
      !informs({ type, field }) &&
      typeof path.reduce<unknown>(
        (value, key) => (value as Record<string, unknown>)[key],
        sealed,
      ) === 'number',
  );

  it.each(NUMBERS)('is dropped where $field is not an amount: $type', ({ sealed, path }) => {
    for (const wrong of [-1, '1', Infinity, -Infinity, true]) {
      expect(
        parseWorkerMessage(
          changed(sealed, path, (parent, key) => {
            parent[key] = wrong;
          }),
        ),
      ).toBeUndefined();
    }
  });

  it.each([
    ['checked', 'id'],
    ['reload-request', 'id'],
    ['scale-request', 'id'],
    ['restart-request', 'id'],
    ['restart-request', 'slot'],
    ['snapshot-request', 'id'],
    ['collect-request', 'id'],
    ['load', 'requests'],
    ['load', 'connections'],
    ['folded', 'epoch'],
    ['folded', 'count'],
  ] as const)('is dropped where of a %s the %s is no whole number', (type, key) => {
    for (const wrong of [0.5, 2 ** 53]) {
      expect(parseWorkerMessage({ ...seal(WORKER_MESSAGES[type]), [key]: wrong })).toBeUndefined();
    }
  });

  it.each(FIELDS.filter((field) => informs(field) || MAY_MISS.has(`${field.type}.${field.field}`)))(
    'of a release with another version passes without $field, and says the rest: $type',
    ({ type, sealed, path }) => {
      const less = changed(sealed, path, (parent, key) => {
        delete parent[key];
      });
      const parsed = parseWorkerMessage(less);
      expect(parsed).toMatchObject({ type });
      for (const [key, value] of Object.entries(less as object)) {
        const whole = key !== 'ns' && key !== 'v' && key !== path[0];
        if (whole) expect(parsed).toHaveProperty(key, value);
      }
    },
  );

  it.each(FIELDS.filter(informs))(
    'of a release with another version passes with nonsense in $field: $type',
    ({ sealed, path, type }) => {
      for (const wrong of [null, -1, 'x'.repeat(70_000), [[]], { a: 1 }, NaN, undefined]) {
        const other = changed(sealed, path, (parent, key) => {
          parent[key] = wrong;
        });
        expect(parseWorkerMessage(onTheWire(other))).toMatchObject({ type });
      }
    },
  );

  it('is a pong whatever it says of the worker, and brings what is right of that', () => {
    const { ns, v } = seal({ type: 'leaving' });
    expect(parseWorkerMessage({ ns, v, type: 'pong' })).toEqual({ type: 'pong', stats: {} });
    expect(
      parseWorkerMessage({
        ns,
        v,
        type: 'pong',
        seq: 3,
        stats: {
          requestsTotal: 7,
          heapUsedBytes: null,
          residentMemoryBytes: '1',
          fromTheFuture: 1,
        },
        debugged: 'no',
      }),
    ).toEqual({ type: 'pong', seq: 3, stats: { requestsTotal: 7 }, debugged: undefined });
  });

  it('of a drain counts as none what it does not say', () => {
    const drained = {
      ...seal({ type: 'leaving' }),
      type: 'drained',
      report: { abortedRequests: 3 },
    };
    expect(parseWorkerMessage(drained)).toEqual({
      type: 'drained',
      report: {
        destroyedConnections: 0,
        abortedRequests: 3,
        destroyedWebSockets: 0,
        hookError: null,
      },
    });
  });

  it.each([{ ns: 'other' }, { ns: undefined }, { v: 2 }, { v: '1' }, { v: undefined }])(
    'is dropped in another envelope: %j',
    (envelope) => {
      for (const message of Object.values(WORKER_MESSAGES)) {
        expect(parseWorkerMessage({ ...seal(message), ...envelope })).toBeUndefined();
      }
    },
  );

  it.each(['ping', 'unknown', '', 'constructor', '__proto__', 5, null])(
    'is dropped with the type %j',
    (type) => {
      expect(parseWorkerMessage({ ns: 'nestjs-cluster', v: 1, type })).toBeUndefined();
    },
  );

  it.each([
    null,
    undefined,
    0,
    true,
    '',
    'pong',
    JSON.stringify(seal(WORKER_MESSAGES.leaving)),
    [],
    [seal(WORKER_MESSAGES.leaving)],
    {},
    { type: 'leaving' },
    { cmd: 'NODE_CLUSTER', act: 'listening' },
    { cmd: 'NODE_x', ...WORKER_MESSAGES.leaving },
    { type: 'prom-client:getMetricsRes' },
  ])('is dropped where it is not ours: %j', (message) => {
    expect(parseWorkerMessage(message)).toBeUndefined();
  });

  it('brings no field along that the protocol does not have', () => {
    for (const message of Object.values(WORKER_MESSAGES)) {
      const extra = { ...seal(message), extra: 1, cmd: 'NODE_x', handle: {} };
      expect(Object.keys(parseWorkerMessage(extra)!).toSorted()).toEqual(
        Object.keys(message).toSorted(),
      );
    }
  });

  it('brings no field along inside another', () => {
    const stats = { ...STATS, extra: 1 };
    const error = { ...ERROR, extra: 1 };
    const report = { ...WORKER_MESSAGES.drained.report, extra: 1 };
    expect(parseWorkerMessage(seal({ ...WORKER_MESSAGES.pong, stats }))).toEqual(
      WORKER_MESSAGES.pong,
    );
    expect(parseWorkerMessage(seal({ ...WORKER_MESSAGES.fatal, error }))).toEqual(
      WORKER_MESSAGES.fatal,
    );
    expect(parseWorkerMessage(seal({ ...WORKER_MESSAGES.drained, report }))).toEqual(
      WORKER_MESSAGES.drained,
    );
  });

  it('does not bring a prototype along', () => {
    const hostile: unknown = JSON.parse(
      '{"ns":"nestjs-cluster","v":1,"type":"leaving","__proto__":{"polluted":1}}',
    );
    const parsed = parseWorkerMessage(hostile) as object;
    expect(Object.getPrototypeOf(parsed)).toBe(Object.prototype);
    expect('polluted' in parsed).toBe(false);
  });

  it('is cut where a text is longer than 64 Ki, never dropped for that', () => {
    const fits = 'x'.repeat(64 * 1024);
    const cut = (message: unknown) => parseWorkerMessage(seal(message as WorkerMessage));
    for (const key of ['name', 'message', 'stack', 'code'] as const) {
      const fatal = (text: string) =>
        ({ type: 'fatal', error: { ...ERROR, [key]: text }, abort: false }) as const;
      expect(cut(fatal(fits))).toEqual(fatal(fits));
      expect(cut(fatal(`${fits}x`))).toEqual(fatal(fits));
    }
    const { ready, blocked, checked } = WORKER_MESSAGES;
    const long = `${fits}x`;
    expect(cut({ ...ready, url: long })).toEqual({ ...ready, url: fits });
    expect(cut({ ...blocked, frames: [long] })).toEqual({ ...blocked, frames: [fits] });
    expect(cut({ ...checked, detail: long })).toEqual({ ...checked, detail: fits });
    for (const key of ['method', 'path']) {
      const of = (text: string) => ({
        ...blocked,
        requests: [{ ...blocked.requests[0]!, [key]: text }],
      });
      expect(cut(of(long))).toEqual(of(fits));
    }
  });

  it('is dropped where it announces more endpoints than there can be', () => {
    const ready = (count: number) => ({
      ...WORKER_MESSAGES.ready,
      endpoints: Array.from({ length: count }, (_, i) => `/${i}`),
    });
    expect(parseWorkerMessage(seal(ready(16)))).toBeDefined();
    expect(parseWorkerMessage(seal(ready(17)))).toBeUndefined();
  });

  it("passes where all workers must be ready, and not with another word than 'all'", () => {
    const ready = (minReady: unknown) =>
      parseWorkerMessage(onTheWire({ ...seal(WORKER_MESSAGES.ready), minReady }));
    expect(ready('all')).toMatchObject({ minReady: 'all' });
    for (const wrong of ['ALL', 'none', '', '1']) expect(ready(wrong)).toBeUndefined();
  });

  it('passes with a health check that found nothing wrong', () => {
    const message = { type: 'checked', id: 4, healthy: true, detail: null } as const;
    expect(parseWorkerMessage(onTheWire(seal(message)))).toEqual(message);
  });

  it('passes with a block of which nothing is known', () => {
    const message = { type: 'blocked', forMs: 2_000, requests: [], frames: [] } as const;
    expect(parseWorkerMessage(onTheWire(seal(message)))).toEqual(message);
  });

  it('is dropped where it reports more of a block than there can be', () => {
    const blocked = (requests: number, frames: number) => ({
      ...WORKER_MESSAGES.blocked,
      requests: Array(requests).fill(WORKER_MESSAGES.blocked.requests[0]),
      frames: Array(frames).fill('f (/app/main.js:1:1)'),
    });
    expect(parseWorkerMessage(seal(blocked(10, 20)))).toBeDefined();
    expect(parseWorkerMessage(seal(blocked(11, 20)))).toBeUndefined();
    expect(parseWorkerMessage(seal(blocked(10, 21)))).toBeUndefined();
  });

  it.each([1, 256])('may ask for %d workers', (workers) => {
    const message = { type: 'scale-request', id: 1, workers } as const;
    expect(parseWorkerMessage(onTheWire(seal(message)))).toEqual(message);
  });

  it.each([0, 257, 1.5, 1e9, Number.MAX_SAFE_INTEGER])(
    'is dropped where it asks for %d workers',
    (workers) => {
      expect(parseWorkerMessage(seal({ type: 'scale-request', id: 1, workers }))).toBeUndefined();
    },
  );

  it.each(['healthy', 'abort'])('is dropped where %s is only something like true', (key) => {
    const { checked, fatal } = WORKER_MESSAGES;
    const message = key === 'healthy' ? checked : fatal;
    for (const like of [1, 0, 'true', '', null, undefined, []]) {
      expect(parseWorkerMessage({ ...seal(message), [key]: like })).toBeUndefined();
    }
  });

  it.each([
    { size: 1, of: 'metrics', types: ['metrics', 'collect-request'] },
    { size: 4, of: 'metrics that were folded', types: ['folded'] },
  ] as const)('is dropped where its $of are larger than $size times 16 Mi', ({ size, types }) => {
    const body = 'x'.repeat(size * MAX_METRICS_BODY_LENGTH);
    for (const type of types) {
      const message = WORKER_MESSAGES[type];
      expect(parseWorkerMessage(seal({ ...message, body }))).toBeDefined();
      expect(parseWorkerMessage(seal({ ...message, body: `${body}x` }))).toBeUndefined();
    }
  });
});

describe('a message of the primary', () => {
  it.each(Object.values(PRIMARY_MESSAGES))('passes as it was sent: $type', (message) => {
    expect(parsePrimaryMessage(onTheWire(seal(message)))).toMatchObject(message);
  });

  it.each([
    null,
    undefined,
    'ping',
    [],
    {},
    { type: 'ping', seq: 1 },
    { cmd: 'NODE_x' },
    { ns: 'nestjs-cluster', v: 2, type: 'ping', seq: 1 },
    { ns: 'nestjs-cluster', v: 1 },
    { ns: 'nestjs-cluster', v: 1, type: 5 },
    { ns: 'other', v: 1, type: 'ping' },
  ])('is dropped where it is not ours: %j', (message) => {
    expect(parsePrimaryMessage(message)).toBeUndefined();
  });
});

describe('seal', () => {
  it('adds name and version, and changes nothing of the message', () => {
    const message = Object.freeze({ type: 'ping', seq: 4 } as const);
    expect(seal(message)).toEqual({ ns: 'nestjs-cluster', v: 1, type: 'ping', seq: 4 });
  });
});

describe('isOurs', () => {
  it.each([
    [seal({ type: 'leaving' }), true],
    [{ ns: 'nestjs-cluster' }, true],
    [{ ns: 'nestjs-cluster', v: 99, type: 'from the future' }, true],
    [{ ns: 'nestjs-cluster-2' }, false],
    [{ cmd: 'NODE_x' }, false],
    [{}, false],
    [[], false],
    [null, false],
    [undefined, false],
    ['nestjs-cluster', false],
    [0, false],
  ])('of %j is %s', (message, ours) => {
    expect(isOurs(message)).toBe(ours);
  });
});

describe('foreignVersionOf', () => {
  it.each([
    [{ ns: 'nestjs-cluster', v: 2, type: 'pong' }, 2],
    [{ ns: 'nestjs-cluster', v: 99 }, 99],
    [{ ns: 'nestjs-cluster', v: 1, type: 'pong' }, undefined],
    [{ ns: 'nestjs-cluster', v: 1, type: 'from the future' }, undefined],
    [{ ns: 'nestjs-cluster', v: '2' }, undefined],
    [{ ns: 'nestjs-cluster' }, undefined],
    [{ ns: 'other', v: 2 }, undefined],
    [null, undefined],
  ])('of %j is %s', (message, version) => {
    expect(foreignVersionOf(message)).toBe(version);
  });
});

describe('reportError', () => {
  /** Whether a report would arrive. */
  const arrives = (report: ReturnType<typeof reportError>) =>
    parseWorkerMessage(onTheWire(seal({ type: 'fatal', error: report, abort: false }))) !==
    undefined;

  it('keeps name, message, stack and code of an error', () => {
    const error = Object.assign(new TypeError('bad'), { code: 'EBAD' });
    expect(reportError(error)).toEqual({
      name: 'TypeError',
      message: 'bad',
      stack: error.stack,
      code: 'EBAD',
    });
  });

  it('keeps no code that is not a text', () => {
    expect(reportError(Object.assign(new Error('x'), { code: 5 })).code).toBeUndefined();
    expect(reportError(new Error('x')).code).toBeUndefined();
  });

  it.each([
    ['a text', 'a text'],
    [5, '5'],
    [undefined, 'undefined'],
    [null, 'null'],
    [Symbol('s'), 'Symbol(s)'],
    [10n, '10'],
    [{ toString: () => 'an object' }, 'an object'],
    [['a', 'b'], 'a,b'],
  ])('tells what else was thrown: %o', (thrown, message) => {
    expect(reportError(thrown)).toEqual({ name: 'Error', message });
  });

  it.each([
    ['a huge message', new Error('x'.repeat(1_000_000))],
    ['a huge text', 'x'.repeat(1_000_000)],
    ['a huge stack', Object.assign(new Error('x'), { stack: 'at x\n'.repeat(1_000_000) })],
    ['a huge code', Object.assign(new Error('x'), { code: 'X'.repeat(1_000_000) })],
    ['a huge name', Object.assign(new Error('x'), { name: 'X'.repeat(1_000_000) })],
    ['no stack', Object.assign(new Error('x'), { stack: undefined })],
  ])('fits a message: %s', (_, thrown) => {
    expect(arrives(reportError(thrown))).toBe(true);
  });

  it.each([
    ['an object without a prototype', Object.create(null)],
    [
      'an object that throws when it is turned into a text',
      {
        toString: () => {
          throw new Error('no');
        },
      },
    ],
    ['an error whose message is a number', Object.assign(new Error('x'), { message: 5 })],
    ['an error whose message is an object', Object.assign(new Error('x'), { message: {} })],
    ['an error without a name', Object.assign(new Error('x'), { name: undefined })],
    // Error.prepareStackTrace may return any value. Some libraries make it return an array.
    ['an error whose stack is an array', Object.assign(new Error('x'), { stack: [{}] })],
    ['an error whose stack throws', Object.defineProperty(new Error('x'), 'stack', { get: no })],
    ['a proxy without a prototype', new Proxy(new Error('x'), { getPrototypeOf: no })],
  ])('fits a message whatever was thrown: %s', (_, thrown) => {
    expect(arrives(reportError(thrown))).toBe(true);
  });
});
