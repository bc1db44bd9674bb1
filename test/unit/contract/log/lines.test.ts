import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { ClusterEventMap } from '../../../../src/contract/log/events.js';
import { SHUTTING_DOWN } from '../../../../src/contract/snapshot/types.js';
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

type Level = 'info' | 'warn' | 'error';

const STARTED = { ...LISTENING, ready: 2, durationMs: 1_912, fastestMs: 612, slowestMs: 1_890 };
const ADMIN = { adminUrl: 'http://127.0.0.1:9464' };
const REVERTED = { generation: 3, reason: 'exited', durationMs: 480 };
const hung = (about: Partial<ClusterEventMap['worker-died']>) =>
  died({ cause: 'hang', detail: 'it hung', uptimeMs: 60_000, ...about });
/** Node's own frame says where the error was noticed, not where to look. */
const NO_FILE = {
  name: 'Error',
  message: 'no file',
  stack: 'Error: no file\n    at readFileSync (node:fs:441:20)\n    at load (/app/cats.js:9:1)',
};

const EVENTS: readonly NamedEvent[] = [
  ['starting', { workers: 8, pid: 4711, node: '24.21.0' }],
  ['listening', { ...LISTENING, endpoints: ['/health', '/metrics'] }],
  ['listening', { ...LISTENING, workers: 3, balancing: 'ports', ports: [3_000, 3_001, 3_002] }],
  ['listening', { ...LISTENING, workers: 1, balancing: 'ports', ports: [3_000] }],
  ['listening', { ...LISTENING, url: 'unix:/a.sock' }],
  ['listening', { ...LISTENING, endpoints: ['/metrics'], ...ADMIN }],
  ['listening', { ...LISTENING, url: null }],
  ['listening', { ...LISTENING, url: null, ...ADMIN }],
  ['started', { ...STARTED, endpoints: ['/health'], ...ADMIN }],
  ['started', { ...STARTED, durationMs: 712, fastestMs: 611, slowestMs: 640.4 }],
  ['started', { ...STARTED, workers: 1, ready: 1 }],
  ['started', { ...STARTED, workers: 3 }],
  ['worker-ready', { worker: WORKER, bootMs: 812.4 }],
  ['worker-died', died({ uptimeMs: 12_340, error: ERROR })],
  ['worker-died', died({ cause: 'boot', error: { ...ERROR, repeated: true } })],
  ['worker-died', died({ error: NO_FILE })],
  ['worker-died', died({ cause: 'killed', detail: 'killed', uptimeMs: 5 })],
  ['worker-died', hung({ requests: BLOCK.requests, blocked: BLOCK })],
  ['worker-died', hung({ requests: BLOCK.requests, blocked: { ...BLOCK, frames: [] } })],
  ['worker-died', hung({ blocked: TICK })],
  ['worker-died', hung({ blocked: { ...TICK, frames: [] }, error: ERROR })],
  [
    'worker-failing',
    { worker: WORKER, error: ERROR, requests: [{ method: 'GET', path: '/cats/7', forMs: 3 }] },
  ],
  ['worker-failing', { worker: WORKER, error: null, requests: [] }],
  ['worker-replacing', { worker: WORKER, cause: 'memory', detail: '210 MB of memory' }],
  ['worker-restarting', { slot: 2, delayMs: 100.4, failures: 1, degraded: false }],
  ['worker-restarting', { slot: 2, delayMs: 15_000, failures: 6, degraded: true }],
  ['worker-draining', { worker: WORKER, cause: 'shutdown' }],
  ['worker-stopped', stopped({ cause: 'shutdown', drainMs: 15 })],
  ['worker-stopped', stopped({ drainMs: 10_000, destroyedConnections: 3, abortedRequests: 2 })],
  ['worker-stopped', stopped({ problem: 'onModuleDestroy threw' })],
  [
    'worker-stopped',
    stopped({ destroyedConnections: 25, abortedRequests: 5, destroyedWebSockets: 20 }),
  ],
  [
    'worker-stopped',
    stopped({ destroyedConnections: 1, abortedRequests: 1, problem: 'it was killed' }),
  ],
  ['reload-started', { generation: 3, reason: 'SIGHUP' }],
  ['reload-reverting', { generation: 3, to: 2, reason: 'exited' }],
  ['reload-ended', { outcome: 'completed', generation: 3, reason: null, durationMs: 4_210 }],
  ['reload-ended', { outcome: 'aborted', ...REVERTED, reason: SHUTTING_DOWN }],
  ['reload-ended', { outcome: 'reverted', ...REVERTED }],
  ['reload-ended', { outcome: 'aborted', ...REVERTED }],
  ['scaling', { from: 2, to: 3, reason: 'SIGTTIN' }],
  ['stopping', { reason: 'SIGTERM', workers: 2, force: 'drain' }],
  ['stopping', { reason: 'SIGTERM', workers: 0, force: 'drain' }],
  ['stopping', { reason: 'SIGINT', workers: 2, force: 'destroy' }],
  ['stopping', { reason: 'SIGINT', workers: 2, force: 'kill' }],
  ['stopped', { exitCode: 0, uptimeMs: 90_500 }],
  ['failed', { message: 'no worker became ready', exitCode: 70, error: ERROR }],
  ['warning', { message: 'dropped a malformed message', worker: WORKER }],
  ['warning', { message: 'something odd', error: ERROR }],
];

/** The lines of these events: level and text. */
const TEXTS = `
info  starting 8 workers (primary pid=4711, Node 24.21.0)
info  listening on http://127.0.0.1:3000 (workers=2, balancing=shared, endpoints: /health /metrics)
info  listening on http://127.0.0.1:3000 to 3002 (workers=3, balancing=ports)
info  listening on http://127.0.0.1:3000 (workers=1, balancing=ports)
info  listening on unix:/a.sock (workers=2, balancing=shared)
info  listening on http://127.0.0.1:3000 (workers=2, balancing=shared, endpoints: /metrics, admin: http://127.0.0.1:9464)
info  the first of 2 workers is ready, no HTTP server
info  the first of 2 workers is ready, no HTTP server (admin: http://127.0.0.1:9464)
info  2/2 workers ready in 1.9 s (0.6–1.9 s), listening on http://127.0.0.1:3000 (balancing=shared, endpoints: /health, admin: http://127.0.0.1:9464)
info  2/2 workers ready in 712 ms (611–640 ms), listening on http://127.0.0.1:3000 (balancing=shared)
info  1/1 worker ready in 1.9 s, listening on http://127.0.0.1:3000 (balancing=shared)
warn  2/3 workers ready in 1.9 s (0.6–1.9 s), listening on http://127.0.0.1:3000 (balancing=shared)
info  ${IDENTITY} ready in 812 ms
error ${IDENTITY} died: exited with code 1 (cause=crash, uptime=12.3 s): ${ERROR_TEXT}
error ${IDENTITY} died: exited with code 1 (cause=boot, uptime=1 ms): the same error (TypeError)
error ${IDENTITY} died: exited with code 1 (cause=crash, uptime=1 ms): Error: no file at load (/app/cats.js:9:1)
error ${IDENTITY} died: killed (cause=killed, uptime=5 ms)
error ${IDENTITY} died: it hung (cause=hang, uptime=60.0 s); ${BLOCK_TEXT}; blocked ${BLOCK_FRAMES}
error ${IDENTITY} died: it hung (cause=hang, uptime=60.0 s); ${BLOCK_TEXT}; no stack
error ${IDENTITY} died: it hung (cause=hang, uptime=60.0 s); blocked tick (/app/a.js:1:1)
error ${IDENTITY} died: it hung (cause=hang, uptime=60.0 s); no stack: ${ERROR_TEXT}
error ${IDENTITY} failing, draining: uncaught error; in flight: GET /cats/7 for 3 ms: ${ERROR_TEXT}
error ${IDENTITY} failing, draining: uncaught error
info  ${IDENTITY} being replaced (cause=memory): 210 MB of memory
warn  worker=2 restarting in 100 ms
error worker=2 restarting in 15000 ms (6 failures in a row) (crash loop: degraded)
info  ${IDENTITY} draining (cause=shutdown)
info  ${IDENTITY} stopped after 15 ms (cause=shutdown)
warn  ${IDENTITY} stopped after 10.0 s (cause=reload); the drain destroyed 3 connections with 2 requests
error ${IDENTITY} stopped after 1 ms (cause=reload): onModuleDestroy threw
warn  ${IDENTITY} stopped after 1 ms (cause=reload); the drain destroyed 25 connections with 5 requests and 20 WebSockets
error ${IDENTITY} stopped after 1 ms (cause=reload); the drain destroyed 1 connection with 1 request: it was killed
info  SIGHUP: reload gen=3 started
error rolling back reload gen=3 to gen=2: exited
info  reload gen=3 completed in 4.2 s
info  reload gen=3 aborted after 480 ms: the cluster is shutting down
error reload gen=3 reverted after 480 ms: exited
error reload gen=3 aborted after 480 ms, the previous workers keep serving: exited
info  SIGTTIN: scaling from 2 to 3 workers
info  SIGTERM: draining 2 workers
info  SIGTERM: draining
warn  SIGINT: destroying open connections of 2 workers
warn  SIGINT: killing 2 workers
info  stopped (exit code 0, uptime 90.5 s)
error giving up (exit code 70): no worker became ready: ${ERROR_TEXT}
warn  ${IDENTITY} dropped a malformed message
warn  something odd: ${ERROR_TEXT}
`;

const LINES = TEXTS.trim()
  .split('\n')
  .map((line, index) => {
    const [, level, text] = /^(\w+) +(.*)$/.exec(line)!;
    return { level: level as Level, text: text!, named: EVENTS[index]! };
  });

/** An event with `text` from an app, for each place that takes some. */
const HOSTILE: readonly ((text: string) => NamedEvent)[] = [
  (text) => ['worker-died', died({ error: { name: 'Error', message: text } })],
  (text) => ['worker-died', died({ error: { name: text, message: 'x' } })],
  (text) => ['warning', { message: 'x', error: { ...ERROR, stack: `Error\n    at ${text}` } }],
  (text) => ['worker-died', died({ requests: [{ method: 'GET', path: text, forMs: 1 }] })],
  (text) => ['worker-died', died({ requests: [{ method: text, path: '/', forMs: 1 }] })],
  (text) => ['worker-died', died({ blocked: { ...TICK, frames: [text] } })],
  (text) => ['reload-ended', { outcome: 'aborted', generation: 1, reason: text, durationMs: 1 }],
  (text) => ['warning', { message: text, worker: WORKER }],
  (text) => ['worker-stopped', stopped({ problem: text })],
  (text) => ['listening', { ...LISTENING, endpoints: [text] }],
];

/** Line breaks, a forged line, colours, a window title, cursor moves and other control characters. */
const DANGEROUS = `one\ntwo\r\nthree\rfour\u0085x\n${NOW} info  [cluster] all is well\u001b[31mred\u001b[0m\u001b]0;owned\u0007\u001b[2J\u001b[H\u009b2J\u0000\u0007\b\v\f\u007fb`;

// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;

describe.each(['text', 'json'] as const)('the log in %s', (format) => {
  it.each(LINES)('writes "$text"', ({ named, level, text }) => {
    const { emit, written } = startLog({ format });
    emit(...named);
    const [used, unused] = level === 'info' ? (['out', 'err'] as const) : (['err', 'out'] as const);
    expect(written[unused]).toBe('');
    if (format === 'text') {
      expect(written[used]).toBe(`${NOW} ${level.padEnd(5)} [cluster] ${text}\n`);
      return;
    }
    const { worker, ...fields } = named[1] as { worker?: object };
    const identity = worker && { worker: 2, gen: 1, pid: 4242 };
    const event = { ...fields, time: NOW, level, event: named[0], message: text, ...identity };
    expect(JSON.parse(written[used])).toEqual(JSON.parse(JSON.stringify(event)));
  });

  it('writes one clean line, whatever an app puts into an event', () => {
    for (const make of HOSTILE) {
      const { emit, written } = startLog({ format });
      emit(...make(DANGEROUS));
      const [line, ...rest] = (written.out + written.err).split('\n');
      expect(rest).toEqual(['']);
      expect(line).not.toMatch(CONTROL);
      if (format === 'text') expect(line!.startsWith(NOW)).toBe(true);
      else expect(JSON.parse(line!)).toMatchObject({ time: NOW });
    }
  });

  it('cuts a long text', () => {
    const { emit, written } = startLog({ format });
    emit('warning', { message: 'x'.repeat(60_000) });
    expect(written.err.length).toBeGreaterThan(4_000);
    expect(written.err.length).toBeLessThan(4_300);
    expect(written.err.endsWith('\n')).toBe(true);
  });
});

it('has a line for each event of the table', () => expect(LINES).toHaveLength(EVENTS.length));

it('keeps further lines of a text, and removes colours and titles', () => {
  const { emit, written } = startLog({});
  emit('warning', {
    message: 'first\n  second\r\nthird a\u001b[31mred\u001b[0m \u001b]0;t\u0007b',
  });
  expect(written.err).toContain('[cluster] first | second | third ared b\n');
});

it('is written quickly, however much white space an app puts into its error', () => {
  vi.useRealTimers();
  const { emit } = startLog({});
  const message = `x${' '.repeat(64 * 1024 - 2)}x`;
  const took = Array.from({ length: 3 }, () => {
    const startedAt = performance.now();
    emit('warning', { message: 'x', worker: WORKER, error: { name: 'Error', message } });
    return performance.now() - startedAt;
  });
  // About 1 ms if the time grows with the length, seconds if it grows with its square.
  expect(Math.min(...took)).toBeLessThan(250);
});

it('has colours on a terminal alone, without NO_COLOR, and never in JSON', () => {
  const written = (format: 'text' | 'json', isTTY: boolean) => {
    const log = startLog({ format }, { isTTY });
    for (const { named } of LINES) log.emit(...named);
    return log.written.out + log.written.err;
  };
  for (const [level, colour] of Object.entries({ info: 32, warn: 33, error: 31 })) {
    expect(written('text', true)).toContain(`\u001b[${colour}m${level}`);
  }
  expect(written('text', false)).not.toContain('\u001b');
  expect(written('json', true)).not.toContain('\u001b');
  vi.stubEnv('NO_COLOR', '1');
  expect(written('text', true)).not.toContain('\u001b');
});
