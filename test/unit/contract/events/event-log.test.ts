import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type ClusterEventName,
  type ClusterEventMap,
  createEventLog,
} from '../../../../src/contract/events/index.js';
import type { LogFormat } from '../../../../src/contract/options/index.js';
import { SHUTTING_DOWN } from '../../../../src/contract/snapshot/index.js';

const NOW = '2026-03-04T05:06:07.890Z';
const WORKER = { slot: 2, pid: 4242, generation: 1 };
const IDENTITY = 'worker=2 gen=1 pid=4242';
const ERROR = {
  name: 'TypeError',
  message: 'x is undefined',
  stack: 'TypeError: x is undefined\n    at boom (/app/main.js:3:7)\n    at run (/app/main.js:9:1)',
};

/** Seven frames, of which a line shows five. */
const BLOCK = {
  forMs: 3_004,
  requests: [
    { method: 'GET', path: '/spin', forMs: 2_999.6 },
    { method: 'POST', path: '/cats', forMs: 12 },
  ],
  frames: Array.from({ length: 7 }, (_, i) => `f${i} (/app/main.js:${i}:1)`),
};
const HUNG = {
  requests: [],
  worker: WORKER,
  cause: 'hang',
  detail: 'it did not answer for 3000 ms (hangTimeoutMs) and was killed',
  uptimeMs: 60_000,
  error: null,
} as const;
const HUNG_TEXT = `${IDENTITY} died: ${HUNG.detail} (cause=hang, uptime=60.0 s)`;

beforeEach(() => {
  vi.useFakeTimers({ now: new Date(NOW) });
  vi.stubEnv('NO_COLOR', '');
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
});

function log(format: LogFormat, { isTTY = false } = {}) {
  const written = { out: '', err: '' };
  const streamTo = (name: 'out' | 'err') => ({
    isTTY,
    write: (text: string) => {
      written[name] += text;
      return true;
    },
  });
  const streams = { out: streamTo('out'), err: streamTo('err') };
  const emit = createEventLog({ format, level: 'info', write: undefined }, streams as never);
  return { emit, written };
}

type AnyEvent = {
  [N in ClusterEventName]: {
    readonly name: N;
    readonly event: ClusterEventMap[N];
    readonly level: 'info' | 'warn' | 'error';
    readonly text: string;
  };
}[ClusterEventName];

const STARTED = {
  url: 'http://127.0.0.1:3000',
  balancing: 'shared',
  ports: [],
  endpoints: ['/health'],
  adminUrl: 'http://127.0.0.1:9000',
  durationMs: 1_912,
  fastestMs: 612,
  slowestMs: 1_890,
};

const EVENTS: readonly AnyEvent[] = [
  {
    name: 'starting',
    event: { workers: 8, pid: 4711, node: '24.21.0' },
    level: 'info',
    text: 'starting 8 workers (primary pid=4711, Node 24.21.0)',
  },
  {
    name: 'started',
    event: { ...STARTED, workers: 16, ready: 16 },
    level: 'info',
    text: '16/16 workers ready in 1.9 s (0.6–1.9 s), listening on http://127.0.0.1:3000 (balancing=shared, endpoints: /health, admin: http://127.0.0.1:9000)',
  },
  {
    name: 'started',
    event: { ...STARTED, workers: 2, ready: 2, durationMs: 712, fastestMs: 611, slowestMs: 640.4 },
    level: 'info',
    text: '2/2 workers ready in 712 ms (611–640 ms), listening on http://127.0.0.1:3000 (balancing=shared, endpoints: /health, admin: http://127.0.0.1:9000)',
  },
  {
    name: 'started',
    event: { ...STARTED, workers: 1, ready: 1, endpoints: [], adminUrl: null },
    level: 'info',
    text: '1/1 worker ready in 1.9 s, listening on http://127.0.0.1:3000 (balancing=shared)',
  },
  {
    name: 'started',
    event: { ...STARTED, workers: 3, ready: 2, endpoints: [], adminUrl: null },
    level: 'warn',
    text: '2/3 workers ready in 1.9 s (0.6–1.9 s), listening on http://127.0.0.1:3000 (balancing=shared)',
  },
  {
    name: 'listening',
    event: {
      url: 'http://127.0.0.1:3000',
      workers: 2,
      balancing: 'shared',
      ports: [],
      endpoints: ['/health', '/metrics'],
      adminUrl: null,
    },
    level: 'info',
    text: 'listening on http://127.0.0.1:3000 (workers=2, balancing=shared, endpoints: /health /metrics)',
  },
  {
    name: 'listening',
    event: {
      url: 'http://127.0.0.1:3000',
      workers: 3,
      balancing: 'ports',
      ports: [3_000, 3_001, 3_002],
      endpoints: [],
      adminUrl: null,
    },
    level: 'info',
    text: 'listening on http://127.0.0.1:3000 to 3002 (workers=3, balancing=ports)',
  },
  {
    name: 'listening',
    event: {
      url: 'http://127.0.0.1:3000',
      workers: 1,
      balancing: 'ports',
      ports: [3_000],
      endpoints: [],
      adminUrl: null,
    },
    level: 'info',
    text: 'listening on http://127.0.0.1:3000 (workers=1, balancing=ports)',
  },
  {
    name: 'listening',
    event: {
      url: 'unix:/a.sock',
      workers: 1,
      balancing: 'shared',
      ports: [],
      endpoints: [],
      adminUrl: null,
    },
    level: 'info',
    text: 'listening on unix:/a.sock (workers=1, balancing=shared)',
  },
  {
    name: 'listening',
    event: {
      url: 'http://127.0.0.1:3000',
      workers: 2,
      balancing: 'shared',
      ports: [],
      endpoints: ['/metrics'],
      adminUrl: 'http://127.0.0.1:9464',
    },
    level: 'info',
    text: 'listening on http://127.0.0.1:3000 (workers=2, balancing=shared, endpoints: /metrics, admin: http://127.0.0.1:9464)',
  },
  {
    name: 'worker-ready',
    event: { worker: WORKER, bootMs: 812.4 },
    level: 'info',
    text: `${IDENTITY} ready in 812 ms`,
  },
  {
    name: 'worker-died',
    event: {
      worker: WORKER,
      cause: 'crash',
      detail: 'exited with code 1',
      uptimeMs: 12_340,
      error: ERROR,
      requests: [],
      blocked: null,
    },
    level: 'error',
    text: `${IDENTITY} died: exited with code 1 (cause=crash, uptime=12.3 s): TypeError: x is undefined at boom (/app/main.js:3:7)`,
  },
  {
    name: 'worker-died',
    event: {
      worker: WORKER,
      cause: 'boot',
      detail: 'exited with code 1',
      uptimeMs: 1,
      error: { name: 'TypeError', message: 'x is undefined', repeated: true },
      requests: [],
      blocked: null,
    },
    level: 'error',
    text: `${IDENTITY} died: exited with code 1 (cause=boot, uptime=1 ms): the same error (TypeError)`,
  },
  {
    // Node's own frames say where it was noticed, not where to look.
    name: 'worker-died',
    event: {
      worker: WORKER,
      cause: 'crash',
      detail: 'exited with code 1',
      uptimeMs: 1,
      error: {
        name: 'Error',
        message: 'no file',
        stack:
          'Error: no file\n    at readFileSync (node:fs:441:20)\n    at load (/app/cats.js:9:1)',
      },
      requests: [],
      blocked: null,
    },
    level: 'error',
    text: `${IDENTITY} died: exited with code 1 (cause=crash, uptime=1 ms): Error: no file at load (/app/cats.js:9:1)`,
  },
  {
    name: 'worker-died',
    event: {
      worker: WORKER,
      cause: 'killed',
      detail: 'killed',
      uptimeMs: 5,
      error: null,
      requests: [],
      blocked: null,
    },
    level: 'error',
    text: `${IDENTITY} died: killed (cause=killed, uptime=5 ms)`,
  },
  {
    name: 'worker-died',
    event: { ...HUNG, requests: BLOCK.requests, blocked: BLOCK },
    level: 'error',
    text: `${HUNG_TEXT}; in flight: GET /spin for 3.0 s, POST /cats for 12 ms; blocked f0 (/app/main.js:0:1) < f1 (/app/main.js:1:1) < f2 (/app/main.js:2:1) < f3 (/app/main.js:3:1) < f4 (/app/main.js:4:1)`,
  },
  {
    // The inspector was not available.
    name: 'worker-died',
    event: { ...HUNG, requests: BLOCK.requests, blocked: { ...BLOCK, frames: [] } },
    level: 'error',
    text: `${HUNG_TEXT}; in flight: GET /spin for 3.0 s, POST /cats for 12 ms; no stack`,
  },
  {
    name: 'worker-died',
    event: {
      ...HUNG,
      requests: [],
      blocked: { forMs: 3_000, requests: [], frames: ['tick (/app/a.js:1:1)'] },
    },
    level: 'error',
    text: `${HUNG_TEXT}; blocked tick (/app/a.js:1:1)`,
  },
  {
    name: 'worker-died',
    event: {
      ...HUNG,
      requests: [],
      blocked: { forMs: 3_000, requests: [], frames: [] },
      error: ERROR,
    },
    level: 'error',
    text: `${HUNG_TEXT}; no stack: TypeError: x is undefined at boom (/app/main.js:3:7)`,
  },
  {
    name: 'worker-failing',
    event: {
      worker: WORKER,
      error: ERROR,
      requests: [{ method: 'GET', path: '/cats/7', forMs: 3 }],
    },
    level: 'error',
    text: `${IDENTITY} failing, draining: uncaught error; in flight: GET /cats/7 for 3 ms: TypeError: x is undefined at boom (/app/main.js:3:7)`,
  },
  {
    name: 'worker-failing',
    event: { worker: WORKER, error: null, requests: [] },
    level: 'error',
    text: `${IDENTITY} failing, draining: uncaught error`,
  },
  {
    name: 'worker-replacing',
    event: { worker: WORKER, cause: 'memory', detail: '210 MB of memory, soft limit 200 MB' },
    level: 'info',
    text: `${IDENTITY} being replaced (cause=memory): 210 MB of memory, soft limit 200 MB`,
  },
  {
    name: 'reload-started',
    event: { generation: 3, reason: 'SIGHUP' },
    level: 'info',
    text: 'SIGHUP: reload gen=3 started',
  },
  {
    name: 'reload-ended',
    event: { outcome: 'completed', generation: 3, reason: null, durationMs: 4_210 },
    level: 'info',
    text: 'reload gen=3 completed in 4.2 s',
  },
  {
    name: 'reload-reverting',
    event: { generation: 3, to: 2, reason: 'worker=1 gen=3: exited with code 1' },
    level: 'error',
    text: 'reload gen=3 is taken back, gen=2 comes back: worker=1 gen=3: exited with code 1',
  },
  {
    name: 'reload-ended',
    event: {
      outcome: 'reverted',
      generation: 3,
      reason: 'worker=1 gen=3: exited with code 1',
      durationMs: 480,
    },
    level: 'error',
    text: 'reload gen=3 reverted after 480 ms: worker=1 gen=3: exited with code 1',
  },
  {
    name: 'reload-ended',
    event: {
      outcome: 'aborted',
      generation: 3,
      reason: 'worker=0 gen=3: exited with code 1: SyntaxError: Unexpected token',
      durationMs: 480,
    },
    level: 'error',
    text: 'reload gen=3 aborted after 480 ms, the workers before it stay: worker=0 gen=3: exited with code 1: SyntaxError: Unexpected token',
  },
  {
    name: 'reload-ended',
    event: { outcome: 'aborted', generation: 3, reason: SHUTTING_DOWN, durationMs: 480 },
    level: 'info',
    text: 'reload gen=3 aborted after 480 ms: the cluster is shutting down',
  },
  {
    name: 'scaling',
    event: { from: 2, to: 3, reason: 'SIGTTIN' },
    level: 'info',
    text: 'SIGTTIN: scaling from 2 to 3 workers',
  },
  {
    name: 'worker-restarting',
    event: { slot: 2, delayMs: 100.4, failures: 1, degraded: false },
    level: 'warn',
    text: 'worker=2 restarting in 100 ms',
  },
  {
    name: 'worker-restarting',
    event: { slot: 2, delayMs: 15_000, failures: 6, degraded: true },
    level: 'error',
    text: 'worker=2 restarting in 15000 ms (failure 6 in a row) (crash loop: degraded)',
  },
  {
    name: 'worker-draining',
    event: { worker: WORKER, cause: 'shutdown' },
    level: 'info',
    text: `${IDENTITY} draining (cause=shutdown)`,
  },
  {
    name: 'worker-stopped',
    event: {
      worker: WORKER,
      cause: 'shutdown',
      drainMs: 15,
      destroyedConnections: 0,
      abortedRequests: 0,
      destroyedWebSockets: 0,
      problem: null,
    },
    level: 'info',
    text: `${IDENTITY} stopped after 15 ms (cause=shutdown)`,
  },
  {
    name: 'worker-stopped',
    event: {
      worker: WORKER,
      cause: 'signal',
      drainMs: 10_000,
      destroyedConnections: 3,
      abortedRequests: 2,
      destroyedWebSockets: 0,
      problem: null,
    },
    level: 'warn',
    text: `${IDENTITY} stopped after 10.0 s (cause=signal); in the end destroyed 3 connections with 2 requests`,
  },
  {
    name: 'worker-stopped',
    event: {
      worker: WORKER,
      cause: 'shutdown',
      drainMs: 5,
      destroyedConnections: 0,
      abortedRequests: 0,
      destroyedWebSockets: 0,
      problem: 'onModuleDestroy threw',
    },
    level: 'error',
    text: `${IDENTITY} stopped after 5 ms (cause=shutdown): onModuleDestroy threw`,
  },
  {
    name: 'worker-stopped',
    event: {
      worker: WORKER,
      cause: 'reload',
      drainMs: 10_000,
      destroyedConnections: 25,
      abortedRequests: 5,
      destroyedWebSockets: 20,
      problem: null,
    },
    level: 'warn',
    text: `${IDENTITY} stopped after 10.0 s (cause=reload); in the end destroyed 25 connections with 5 requests and 20 WebSockets`,
  },
  {
    name: 'worker-stopped',
    event: {
      worker: WORKER,
      cause: 'recycle',
      drainMs: 12_500,
      destroyedConnections: 1,
      abortedRequests: 1,
      destroyedWebSockets: 0,
      problem: 'it did not end in time and was killed',
    },
    level: 'error',
    text: `${IDENTITY} stopped after 12.5 s (cause=recycle); in the end destroyed 1 connections with 1 requests: it did not end in time and was killed`,
  },
  {
    name: 'stopping',
    event: { reason: 'SIGTERM', workers: 2, force: 'drain' },
    level: 'info',
    text: 'SIGTERM: draining 2 workers',
  },
  {
    // With workers: 0 there are none.
    name: 'stopping',
    event: { reason: 'SIGTERM', workers: 0, force: 'drain' },
    level: 'info',
    text: 'SIGTERM: draining',
  },
  {
    name: 'stopping',
    event: { reason: 'SIGINT', workers: 2, force: 'destroy' },
    level: 'warn',
    text: 'SIGINT: destroying open connections of 2 workers',
  },
  {
    name: 'stopping',
    event: { reason: 'SIGINT', workers: 2, force: 'kill' },
    level: 'warn',
    text: 'SIGINT: killing 2 workers',
  },
  {
    name: 'stopped',
    event: { exitCode: 0, uptimeMs: 90_500 },
    level: 'info',
    text: 'stopped (exit code 0, uptime 90.5 s)',
  },
  {
    name: 'failed',
    event: { message: 'no worker became ready', exitCode: 70, error: ERROR },
    level: 'error',
    text: 'giving up (exit code 70): no worker became ready: TypeError: x is undefined at boom (/app/main.js:3:7)',
  },
  {
    name: 'warning',
    event: { message: 'dropped a malformed message', worker: WORKER },
    level: 'warn',
    text: `${IDENTITY} dropped a malformed message`,
  },
  {
    name: 'warning',
    event: { message: 'something odd', error: ERROR },
    level: 'warn',
    text: 'something odd: TypeError: x is undefined at boom (/app/main.js:3:7)',
  },
];

type Emit = ReturnType<typeof createEventLog>;
const tell = (emit: Emit, { name, event }: AnyEvent) => emit(name, event as never);

/** Writes an event with `text` from an app's error in each place that takes some. */
const HOSTILE: readonly [string, (text: string) => [ClusterEventName, unknown]][] = [
  [
    'the message of an error',
    (text) => [
      'worker-died',
      {
        worker: WORKER,
        cause: 'crash',
        detail: 'x',
        uptimeMs: 1,
        error: { name: 'Error', message: text },
        requests: [],
        blocked: null,
      },
    ],
  ],
  [
    'the name of an error',
    (text) => [
      'worker-died',
      {
        worker: WORKER,
        cause: 'crash',
        detail: 'x',
        uptimeMs: 1,
        error: { name: text, message: 'x' },
        requests: [],
        blocked: null,
      },
    ],
  ],
  [
    'the stack of an error',
    (text) => [
      'warning',
      { message: 'x', error: { name: 'Error', message: 'x', stack: `Error\n    at ${text}` } },
    ],
  ],
  [
    'the path of a request that blocks',
    (text) => [
      'worker-died',
      {
        ...HUNG,
        blocked: { forMs: 1, requests: [{ method: 'GET', path: text, forMs: 1 }], frames: [] },
      },
    ],
  ],
  [
    'the method of a request that blocks',
    (text) => [
      'worker-died',
      {
        ...HUNG,
        blocked: { forMs: 1, requests: [{ method: text, path: '/', forMs: 1 }], frames: [] },
      },
    ],
  ],
  [
    'a frame of a block',
    (text) => ['worker-died', { ...HUNG, blocked: { forMs: 1, requests: [], frames: [text] } }],
  ],
  [
    'the reason of an aborted reload',
    (text) => ['reload-ended', { outcome: 'aborted', generation: 1, reason: text, durationMs: 1 }],
  ],
  ['a warning', (text) => ['warning', { message: text, worker: WORKER }]],
  [
    'the problem of a drain',
    (text) => [
      'worker-stopped',
      {
        worker: WORKER,
        cause: 'signal',
        drainMs: 1,
        destroyedConnections: 0,
        abortedRequests: 0,
        destroyedWebSockets: 0,
        problem: text,
      },
    ],
  ],
  [
    'an endpoint of an app',
    (text) => [
      'listening',
      { url: 'u', workers: 1, balancing: 'shared', ports: [], endpoints: [text] },
    ],
  ],
];

const DANGEROUS: readonly [string, string][] = [
  ['line breaks', 'one\ntwo\r\nthree\rfour'],
  ['a forged line', `x\n${NOW} info  [cluster] all is well`],
  ['colours', 'a\u001b[31mred\u001b[0m'],
  ['a window title', 'a\u001b]0;owned\u0007b'],
  ['a cleared screen', '\u001b[2J\u001b[H'],
  ['cursor moves of one byte', 'a\u009b2Jb'],
  ['bells, backspaces and NULs', 'a\u0000\u0007\b\v\f\u007fb'],
  ['the other line break', 'a\u0085b'],
];

// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;

describe('the text log', () => {
  it.each(EVENTS)('writes "$text"', (one) => {
    const { emit, written } = log('text');
    tell(emit, one);
    const line = `${NOW} ${one.level.padEnd(5)} [cluster] ${one.text}\n`;
    expect(written).toEqual(one.level === 'info' ? { out: line, err: '' } : { out: '', err: line });
  });

  it.each(HOSTILE.flatMap(([place, make]) => DANGEROUS.map((d) => [...d, place, make] as const)))(
    'is one clean line with %s (%o) in %s',
    (_, text, _place, make) => {
      const { emit, written } = log('text');
      const [name, event] = make(text);
      emit(name, event as never);
      const lines = (written.out + written.err).split('\n');
      expect(lines).toHaveLength(2);
      expect(lines[1]).toBe('');
      expect(lines[0]).not.toMatch(CONTROL);
      expect(lines[0]!.startsWith(NOW)).toBe(true);
    },
  );

  it('keeps what stood on the further lines of an error', () => {
    const { emit, written } = log('text');
    emit('warning', { message: 'first\n  second\r\nthird' });
    expect(written.err).toContain('first | second | third');
  });

  it('leaves nothing behind of colours and titles', () => {
    const { emit, written } = log('text');
    emit('warning', { message: 'a\u001b[31mred\u001b[0m \u001b]0;title\u0007b' });
    expect(written.err).toContain('[cluster] ared b\n');
  });

  it('cuts a long text', () => {
    const { emit, written } = log('text');
    emit('warning', { message: 'x'.repeat(60_000) });
    expect(written.err.length).toBeGreaterThan(4_000);
    expect(written.err.length).toBeLessThan(4_200);
    expect(written.err.endsWith('\n')).toBe(true);
  });

  it('is written in no time, however much white space an app puts into its error', () => {
    vi.useRealTimers();
    const { emit } = log('text');
    const error = { name: 'Error', message: `x${' '.repeat(64 * 1024 - 2)}x` };
    const took = Array.from({ length: 3 }, () => {
      const startedAt = performance.now();
      emit('warning', { message: 'x', worker: WORKER, error });
      return performance.now() - startedAt;
    });
    // About 1 ms for what grows with the length, seconds for what grows with its square. At best: a
    // machine that is busy elsewhere delays one, not each.
    expect(Math.min(...took)).toBeLessThan(250);
  });
});

describe('colours', () => {
  const line = (options: { isTTY: boolean }, name: 'info' | 'warn' | 'error') => {
    const { emit, written } = log('text', options);
    tell(
      emit,
      EVENTS.find(({ level }) => level === name)!,
    );
    return written.out + written.err;
  };

  it.each([
    ['info', 32],
    ['warn', 33],
    ['error', 31],
  ] as const)('are on a terminal: %s is ESC[%dm', (level, colour) => {
    expect(line({ isTTY: true }, level)).toContain(`\u001b[${colour}m${level}`);
  });

  it('are not where the line goes to no terminal', () => {
    for (const level of ['info', 'warn', 'error'] as const) {
      expect(line({ isTTY: false }, level)).not.toContain('\u001b');
    }
  });

  it('are not where NO_COLOR is set', () => {
    vi.stubEnv('NO_COLOR', '1');
    expect(line({ isTTY: true }, 'error')).not.toContain('\u001b');
  });

  it('are never in JSON', () => {
    const { emit, written } = log('json', { isTTY: true });
    for (const one of EVENTS) tell(emit, one);
    expect(written.out + written.err).not.toContain('\u001b');
  });
});

describe('the JSON log', () => {
  const parse = (written: { out: string; err: string }) => {
    const text = written.out + written.err;
    expect(text.indexOf('\n')).toBe(text.length - 1);
    return JSON.parse(text) as Record<string, unknown>;
  };

  it.each(EVENTS)('writes "$text" as one object', (one) => {
    const { emit, written } = log('json');
    tell(emit, one);
    expect(written[one.level === 'info' ? 'err' : 'out']).toBe('');
    expect(parse(written)).toMatchObject({
      time: NOW,
      level: one.level,
      event: one.name,
      message: one.text,
    });
  });

  it('names the worker by slot, generation and pid in every event that has one', () => {
    for (const one of EVENTS.filter(({ event }) => 'worker' in event)) {
      const { emit, written } = log('json');
      tell(emit, one);
      expect(parse(written)).toMatchObject({ worker: 2, gen: 1, pid: 4242 });
    }
  });

  it('has the figures of the event as numbers', () => {
    const { emit, written } = log('json');
    emit('worker-restarting', { slot: 2, delayMs: 100, failures: 3, degraded: true });
    expect(parse(written)).toMatchObject({ slot: 2, delayMs: 100, failures: 3, degraded: true });
  });

  it('has the whole report of a block, also the frames that a line leaves out', () => {
    const { emit, written } = log('json');
    emit('worker-died', { ...HUNG, blocked: BLOCK });
    expect(parse(written)['blocked']).toEqual(BLOCK);
  });

  it('has the result of a reload', () => {
    const { emit, written } = log('json');
    const result = { outcome: 'aborted', generation: 2, reason: 'no such module' } as const;
    emit('reload-ended', { ...result, durationMs: 5 });
    expect(parse(written)).toMatchObject({ ...result, durationMs: 5 });
  });

  it('has the whole error', () => {
    const { emit, written } = log('json');
    emit('warning', { message: 'x', error: ERROR });
    expect(parse(written)['error']).toEqual(ERROR);
  });

  it.each(HOSTILE.flatMap(([place, make]) => DANGEROUS.map((d) => [...d, place, make] as const)))(
    'is one clean line with %s (%o) in %s',
    (_, text, _place, make) => {
      const { emit, written } = log('json');
      const [name, event] = make(text);
      emit(name, event as never);
      parse(written);
      expect((written.out + written.err).slice(0, -1)).not.toMatch(CONTROL);
    },
  );

  it('cuts a long message', () => {
    const { emit, written } = log('json');
    emit('warning', { message: 'x'.repeat(60_000) });
    expect((parse(written)['message'] as string).length).toBeLessThan(4_200);
  });
});

describe('the identity of a worker', () => {
  it.each(EVENTS.filter(({ event }) => 'worker' in event))('begins the line "$text"', (one) => {
    const { emit, written } = log('text');
    tell(emit, one);
    expect(written.out + written.err).toContain(`[cluster] ${IDENTITY} `);
  });
});
