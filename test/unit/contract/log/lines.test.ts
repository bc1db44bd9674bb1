import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ClusterEventMap } from '../../../../src/contract/log/events.js';
import { SHUTTING_DOWN } from '../../../../src/contract/snapshot/index.js';
import {
  died,
  LISTENING,
  type NamedEvent,
  startLog,
  stopped,
  WORKER,
} from '../../support/cluster-events.js';

const NOW = '2026-03-04T05:06:07.890Z';
const IDENTITY = 'worker=2 gen=1 pid=4242';
const ERROR = {
  name: 'TypeError',
  message: 'x is undefined',
  stack: 'TypeError: x is undefined\n    at boom (/app/main.js:3:7)\n    at run (/app/main.js:9:1)',
};
const ERROR_TEXT = 'TypeError: x is undefined at boom (/app/main.js:3:7)';

/** Seven frames, of which a line shows five. */
const BLOCK = {
  forMs: 3_004,
  requests: [
    { method: 'GET', path: '/spin', forMs: 2_999.6 },
    { method: 'POST', path: '/cats', forMs: 12 },
  ],
  frames: Array.from({ length: 7 }, (_, i) => `f${i} (/app/main.js:${i}:1)`),
};
const BLOCK_TEXT = 'in flight: GET /spin for 3.0 s, POST /cats for 12 ms';
const BLOCK_FRAMES =
  'f0 (/app/main.js:0:1) < f1 (/app/main.js:1:1) < f2 (/app/main.js:2:1) < f3 (/app/main.js:3:1) < f4 (/app/main.js:4:1)';

const TICK = { forMs: 3_000, requests: [], frames: ['tick (/app/a.js:1:1)'] };

beforeEach(() => {
  vi.useFakeTimers({ now: new Date(NOW) });
  vi.stubEnv('NO_COLOR', '');
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
});

type Level = 'info' | 'warn' | 'error';
interface Line {
  readonly named: NamedEvent;
  readonly level: Level;
  readonly text: string;
}

/** The lines of workers that died, from `IDENTITY died: ` on. */
const DIED: readonly [about: Partial<ClusterEventMap['worker-died']>, text: string][] = [
  [
    { uptimeMs: 12_340, error: ERROR },
    `exited with code 1 (cause=crash, uptime=12.3 s): ${ERROR_TEXT}`,
  ],
  [
    { cause: 'boot', error: { name: 'TypeError', message: 'x is undefined', repeated: true } },
    'exited with code 1 (cause=boot, uptime=1 ms): the same error (TypeError)',
  ],
  [
    // Node's own frames say where it was noticed, not where to look.
    {
      error: {
        name: 'Error',
        message: 'no file',
        stack:
          'Error: no file\n    at readFileSync (node:fs:441:20)\n    at load (/app/cats.js:9:1)',
      },
    },
    'exited with code 1 (cause=crash, uptime=1 ms): Error: no file at load (/app/cats.js:9:1)',
  ],
  [{ cause: 'killed', detail: 'killed', uptimeMs: 5 }, 'killed (cause=killed, uptime=5 ms)'],
];

/** The lines of workers that hung, behind cause and uptime. */
const HUNG: readonly [about: Partial<ClusterEventMap['worker-died']>, text: string][] = [
  [{ requests: BLOCK.requests, blocked: BLOCK }, `; ${BLOCK_TEXT}; blocked ${BLOCK_FRAMES}`],
  // The inspector was not available.
  [{ requests: BLOCK.requests, blocked: { ...BLOCK, frames: [] } }, `; ${BLOCK_TEXT}; no stack`],
  [{ blocked: TICK }, '; blocked tick (/app/a.js:1:1)'],
  [{ blocked: { ...TICK, frames: [] }, error: ERROR }, `; no stack: ${ERROR_TEXT}`],
];
const hung = (about: Partial<ClusterEventMap['worker-died']>) =>
  died({ cause: 'hang', detail: 'it hung', uptimeMs: 60_000, ...about });

/** The lines of workers that ended, from `IDENTITY stopped after ` on. */
const STOPPED: readonly [
  about: Partial<ClusterEventMap['worker-stopped']>,
  level: Level,
  text: string,
][] = [
  [{ cause: 'shutdown', drainMs: 15 }, 'info', '15 ms (cause=shutdown)'],
  [
    { cause: 'signal', drainMs: 10_000, destroyedConnections: 3, abortedRequests: 2 },
    'warn',
    '10.0 s (cause=signal); in the end destroyed 3 connections with 2 requests',
  ],
  [{ problem: 'onModuleDestroy threw' }, 'error', '1 ms (cause=reload): onModuleDestroy threw'],
  [
    { destroyedConnections: 25, abortedRequests: 5, destroyedWebSockets: 20 },
    'warn',
    '1 ms (cause=reload); in the end destroyed 25 connections with 5 requests and 20 WebSockets',
  ],
  [
    { drainMs: 12_500, destroyedConnections: 1, abortedRequests: 1, problem: 'it was killed' },
    'error',
    '12.5 s (cause=reload); in the end destroyed 1 connections with 1 requests: it was killed',
  ],
];

/** The lines of an address, from `listening on ` on. */
const ADDRESSES: readonly [about: Partial<ClusterEventMap['listening']>, text: string][] = [
  [
    { endpoints: ['/health', '/metrics'] },
    'http://127.0.0.1:3000 (workers=2, balancing=shared, endpoints: /health /metrics)',
  ],
  [
    { workers: 3, balancing: 'ports', ports: [3_000, 3_001, 3_002] },
    'http://127.0.0.1:3000 to 3002 (workers=3, balancing=ports)',
  ],
  [
    { workers: 1, balancing: 'ports', ports: [3_000] },
    'http://127.0.0.1:3000 (workers=1, balancing=ports)',
  ],
  [{ url: 'unix:/a.sock' }, 'unix:/a.sock (workers=2, balancing=shared)'],
  [
    { endpoints: ['/metrics'], adminUrl: 'http://127.0.0.1:9464' },
    'http://127.0.0.1:3000 (workers=2, balancing=shared, endpoints: /metrics, admin: http://127.0.0.1:9464)',
  ],
];

const STARTED = { ...LISTENING, durationMs: 1_912, fastestMs: 612, slowestMs: 1_890 };
const STARTED_TEXT = 'listening on http://127.0.0.1:3000 (balancing=shared';

/** The lines of other events: the text, and the event with its name. */
const OTHERS: Readonly<Record<Level, readonly [text: string, ...NamedEvent][]>> = {
  info: [
    [
      'starting 8 workers (primary pid=4711, Node 24.21.0)',
      'starting',
      { workers: 8, pid: 4711, node: '24.21.0' },
    ],
    [
      `16/16 workers ready in 1.9 s (0.6–1.9 s), ${STARTED_TEXT}, endpoints: /health, admin: http://127.0.0.1:9000)`,
      'started',
      {
        ...STARTED,
        workers: 16,
        ready: 16,
        endpoints: ['/health'],
        adminUrl: 'http://127.0.0.1:9000',
      },
    ],
    [
      `2/2 workers ready in 712 ms (611–640 ms), ${STARTED_TEXT})`,
      'started',
      { ...STARTED, ready: 2, durationMs: 712, fastestMs: 611, slowestMs: 640.4 },
    ],
    [
      `1/1 worker ready in 1.9 s, ${STARTED_TEXT})`,
      'started',
      { ...STARTED, workers: 1, ready: 1 },
    ],
    [`${IDENTITY} ready in 812 ms`, 'worker-ready', { worker: WORKER, bootMs: 812.4 }],
    [
      `${IDENTITY} being replaced (cause=memory): 210 MB of memory, soft limit 200 MB`,
      'worker-replacing',
      { worker: WORKER, cause: 'memory', detail: '210 MB of memory, soft limit 200 MB' },
    ],
    ['SIGHUP: reload gen=3 started', 'reload-started', { generation: 3, reason: 'SIGHUP' }],
    [
      'reload gen=3 completed in 4.2 s',
      'reload-ended',
      { outcome: 'completed', generation: 3, reason: null, durationMs: 4_210 },
    ],
    [
      'reload gen=3 aborted after 480 ms: the cluster is shutting down',
      'reload-ended',
      { outcome: 'aborted', generation: 3, reason: SHUTTING_DOWN, durationMs: 480 },
    ],
    ['SIGTTIN: scaling from 2 to 3 workers', 'scaling', { from: 2, to: 3, reason: 'SIGTTIN' }],
    [
      `${IDENTITY} draining (cause=shutdown)`,
      'worker-draining',
      { worker: WORKER, cause: 'shutdown' },
    ],
    ['SIGTERM: draining 2 workers', 'stopping', { reason: 'SIGTERM', workers: 2, force: 'drain' }],
    // With workers: 0 there are none.
    ['SIGTERM: draining', 'stopping', { reason: 'SIGTERM', workers: 0, force: 'drain' }],
    ['stopped (exit code 0, uptime 90.5 s)', 'stopped', { exitCode: 0, uptimeMs: 90_500 }],
  ],
  warn: [
    [
      `2/3 workers ready in 1.9 s (0.6–1.9 s), ${STARTED_TEXT})`,
      'started',
      { ...STARTED, workers: 3, ready: 2 },
    ],
    [
      'worker=2 restarting in 100 ms',
      'worker-restarting',
      { slot: 2, delayMs: 100.4, failures: 1, degraded: false },
    ],
    [
      'SIGINT: destroying open connections of 2 workers',
      'stopping',
      { reason: 'SIGINT', workers: 2, force: 'destroy' },
    ],
    ['SIGINT: killing 2 workers', 'stopping', { reason: 'SIGINT', workers: 2, force: 'kill' }],
    [
      `${IDENTITY} dropped a malformed message`,
      'warning',
      { message: 'dropped a malformed message', worker: WORKER },
    ],
    [`something odd: ${ERROR_TEXT}`, 'warning', { message: 'something odd', error: ERROR }],
  ],
  error: [
    [
      `${IDENTITY} failing, draining: uncaught error; in flight: GET /cats/7 for 3 ms: ${ERROR_TEXT}`,
      'worker-failing',
      { worker: WORKER, error: ERROR, requests: [{ method: 'GET', path: '/cats/7', forMs: 3 }] },
    ],
    [
      `${IDENTITY} failing, draining: uncaught error`,
      'worker-failing',
      { worker: WORKER, error: null, requests: [] },
    ],
    [
      'reload gen=3 is taken back, gen=2 comes back: exited',
      'reload-reverting',
      { generation: 3, to: 2, reason: 'exited' },
    ],
    [
      'reload gen=3 reverted after 480 ms: exited',
      'reload-ended',
      { outcome: 'reverted', generation: 3, reason: 'exited', durationMs: 480 },
    ],
    [
      'reload gen=3 aborted after 480 ms, the workers before it stay: exited',
      'reload-ended',
      { outcome: 'aborted', generation: 3, reason: 'exited', durationMs: 480 },
    ],
    [
      'worker=2 restarting in 15000 ms (failure 6 in a row) (crash loop: degraded)',
      'worker-restarting',
      { slot: 2, delayMs: 15_000, failures: 6, degraded: true },
    ],
    [
      `giving up (exit code 70): no worker became ready: ${ERROR_TEXT}`,
      'failed',
      { message: 'no worker became ready', exitCode: 70, error: ERROR },
    ],
  ],
};

const LINES: readonly Line[] = [
  ...(Object.keys(OTHERS) as Level[]).flatMap((level) =>
    OTHERS[level].map(([text, ...named]): Line => ({ level, text, named })),
  ),
  ...ADDRESSES.map(([about, text]): Line => ({
    level: 'info',
    text: `listening on ${text}`,
    named: ['listening', { ...LISTENING, ...about }],
  })),
  ...DIED.map(([about, text]): Line => ({
    level: 'error',
    text: `${IDENTITY} died: ${text}`,
    named: ['worker-died', died(about)],
  })),
  ...HUNG.map(([about, text]): Line => ({
    level: 'error',
    text: `${IDENTITY} died: it hung (cause=hang, uptime=60.0 s)${text}`,
    named: ['worker-died', hung(about)],
  })),
  ...STOPPED.map(([about, level, text]): Line => ({
    level,
    text: `${IDENTITY} stopped after ${text}`,
    named: ['worker-stopped', stopped(about)],
  })),
];

/** An event with `text` from an app's error, for each place that takes some. */
const HOSTILE: readonly [place: string, (text: string) => NamedEvent][] = [
  [
    'the message of an error',
    (text) => ['worker-died', died({ error: { name: 'Error', message: text } })],
  ],
  [
    'the name of an error',
    (text) => ['worker-died', died({ error: { name: text, message: 'x' } })],
  ],
  [
    'the stack of an error',
    (text) => ['warning', { message: 'x', error: { ...ERROR, stack: `Error\n    at ${text}` } }],
  ],
  [
    'the path of a request that blocks',
    (text) => ['worker-died', died({ requests: [{ method: 'GET', path: text, forMs: 1 }] })],
  ],
  [
    'the method of a request that blocks',
    (text) => ['worker-died', died({ requests: [{ method: text, path: '/', forMs: 1 }] })],
  ],
  ['a frame of a block', (text) => ['worker-died', died({ blocked: { ...TICK, frames: [text] } })]],
  [
    'the reason of an aborted reload',
    (text) => ['reload-ended', { outcome: 'aborted', generation: 1, reason: text, durationMs: 1 }],
  ],
  ['a warning', (text) => ['warning', { message: text, worker: WORKER }]],
  ['the problem of a drain', (text) => ['worker-stopped', stopped({ problem: text })]],
  ['an endpoint of an app', (text) => ['listening', { ...LISTENING, endpoints: [text] }]],
];

const DANGEROUS: readonly [what: string, text: string][] = [
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
  it.each(LINES)('writes "$text"', ({ named, level, text }) => {
    const { emit, written } = startLog({});
    emit(...named);
    const line = `${NOW} ${level.padEnd(5)} [cluster] ${text}\n`;
    expect(written).toEqual(level === 'info' ? { out: line, err: '' } : { out: '', err: line });
  });

  it.each([
    ['first\n  second\r\nthird', '[cluster] first | second | third\n'],
    ['a\u001b[31mred\u001b[0m \u001b]0;title\u0007b', '[cluster] ared b\n'],
  ])('keeps further lines, and nothing of colours and titles: %j', (message, line) => {
    const { emit, written } = startLog({});
    emit('warning', { message });
    expect(written.err).toContain(line);
  });

  it('is written in no time, however much white space an app puts into its error', () => {
    vi.useRealTimers();
    const { emit } = startLog({});
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

describe.each(['text', 'json'] as const)('a line in %s', (format) => {
  it.each(
    HOSTILE.flatMap(([place, make]) => DANGEROUS.map((each) => [...each, place, make] as const)),
  )('is one clean line with %s (%o) in %s', (_, text, _place, make) => {
    const { emit, written } = startLog({ format });
    emit(...make(text));
    const [line, ...rest] = (written.out + written.err).split('\n');
    expect(rest).toEqual(['']);
    expect(line).not.toMatch(CONTROL);
    if (format === 'text') expect(line!.startsWith(NOW)).toBe(true);
    else expect(JSON.parse(line!)).toMatchObject({ time: NOW });
  });

  it('cuts a long text', () => {
    const { emit, written } = startLog({ format });
    emit('warning', { message: 'x'.repeat(60_000) });
    expect(written.err.length).toBeGreaterThan(4_000);
    expect(written.err.length).toBeLessThan(4_300);
    expect(written.err.endsWith('\n')).toBe(true);
  });
});

describe('colours', () => {
  const line = (level: Level, isTTY = true) => {
    const { emit, written } = startLog({}, { isTTY });
    emit(...LINES.find((each) => each.level === level)!.named);
    return written.out + written.err;
  };

  it.each([
    ['info', 32],
    ['warn', 33],
    ['error', 31],
  ] as const)('are on a terminal alone: %s is ESC[%dm', (level, colour) => {
    expect(line(level)).toContain(`\u001b[${colour}m${level}`);
    expect(line(level, false)).not.toContain('\u001b');
  });

  it('are not where NO_COLOR is set', () => {
    vi.stubEnv('NO_COLOR', '1');
    expect(line('error')).not.toContain('\u001b');
  });

  it('are never in JSON', () => {
    const { emit, written } = startLog({ format: 'json' }, { isTTY: true });
    for (const { named } of LINES) emit(...named);
    expect(written.out + written.err).not.toContain('\u001b');
  });
});

describe('the JSON log', () => {
  /** The line of an event, parsed. */
  function parsed(...named: NamedEvent) {
    const { emit, written } = startLog({ format: 'json' });
    emit(...named);
    return { written, line: JSON.parse(written.out + written.err) as Record<string, unknown> };
  }

  it.each(LINES)('writes "$text" as one object', ({ named, level, text }) => {
    const { written, line } = parsed(...named);
    expect(written[level === 'info' ? 'err' : 'out']).toBe('');
    expect(line).toMatchObject({ time: NOW, level, event: named[0], message: text });
  });

  it('names the worker by slot, generation and pid in every event that has one', () => {
    for (const { named } of LINES.filter(({ named: [, event] }) => 'worker' in event)) {
      expect(parsed(...named).line).toMatchObject({ worker: 2, gen: 1, pid: 4242 });
    }
  });

  it.each<NamedEvent>([
    ['worker-restarting', { slot: 2, delayMs: 100, failures: 3, degraded: true }],
    ['reload-ended', { outcome: 'aborted', generation: 2, reason: 'no module', durationMs: 5 }],
  ])('has all that the event says: %s', (name, event) => {
    expect(parsed(...([name, event] as NamedEvent)).line).toMatchObject(event);
  });

  it('has the whole report of a block, also the frames that a line leaves out', () => {
    expect(parsed('worker-died', hung({ blocked: BLOCK })).line['blocked']).toEqual(BLOCK);
  });

  it('has the whole error', () => {
    expect(parsed('warning', { message: 'x', error: ERROR }).line['error']).toEqual(ERROR);
  });
});
