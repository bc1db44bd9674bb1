import { describe, expect, it } from 'vitest';
import {
  type ClusterOptions,
  resolveOptions,
  refuseConflicts,
} from '../../../../src/contract/options/resolve.js';
import { refusal as refusalOf } from '../../support/refusal.js';

const LINUX_24 = { system: 'linux', nodeVersion: '24.1.0' };
const OLD_MAC = { system: 'darwin', nodeVersion: '20.19.0' };

/** The options as if given alone, with what conflicts for the platform put in afterwards. */
function refuse(options: ClusterOptions, platform = LINUX_24): void {
  const { balancing = 'shared', ...rest } = options;
  const resolved = resolveOptions({ workers: 2, ...rest }, {});
  refuseConflicts(options, { ...resolved, balancing }, platform);
}

const refusal = (options: ClusterOptions, platform = LINUX_24) =>
  refusalOf(() => refuse(options, platform));

const path = '/run/app.sock';
const GIB = 2 ** 30;

it.each<[ClusterOptions, string]>([
  [{ path, port: 80 }, `set either path or port, not both (path: "${path}", port: 80)`],
  [{ path, port: 0 }, 'set either path or port, not both'],
  [{ path, host: '::1' }, `set either path or host, not both (path: "${path}", host: ::1)`],
  [
    { memory: { softLimitBytes: GIB, hardLimitBytes: GIB } },
    `memory.softLimitBytes (${GIB}) must be below memory.hardLimitBytes (${GIB})`,
  ],
  [
    { memory: { profile: true } },
    'memory.profile needs memory.softLimitBytes and watchdog: true; set both',
  ],
  [{ memory: { softLimitBytes: GIB, profile: true }, watchdog: false }, 'and watchdog: true'],
  [{ balancing: 'ports', path }, `balancing 'ports' needs a port, but path is "${path}"`],
  [{ balancing: 'reuse-port', path }, `balancing 'reuse-port' needs a port, but path is "${path}"`],
  [
    { balancing: 'ports', port: 0, workers: 1 },
    "balancing 'ports' needs a first port, but port is 0",
  ],
  [{ balancing: 'ports', port: 65_533, workers: 4 }, 'port 65533 and 4 workers exceeds port 65535'],
  [{ admin: { port: 3_000 } }, 'admin.port (3000) is a port of the app (port: 3000)'],
  [
    { host: '10.0.0.1', port: 3_001, admin: { port: 3_001, host: '::1' } },
    'admin.port (3001) is a port of the app (port: 3001)',
  ],
  [
    { balancing: 'ports', workers: 4, admin: { port: 3_003 } },
    'admin.port (3003) is a port of the app (port: 3000 to 3003)',
  ],
  [{ expose: 'admin' }, "expose is 'admin', but there is no admin listener; set admin: { port }"],
  [
    { expose: 'admin', admin: { port: 1 }, workers: 0 },
    "expose is 'admin', but workers: 0 has no admin listener",
  ],
])('refuses %j', (options, message) => {
  expect(refusal(options)).toMatch(/^invalid options: /);
  expect(refusal(options)).toContain(message);
});

it.each<ClusterOptions>([
  { memory: { softLimitBytes: GIB - 1, hardLimitBytes: GIB } },
  { memory: { softLimitBytes: GIB } },
  { memory: { softLimitBytes: GIB, profile: true } },
  { balancing: 'shared', path },
  { balancing: 'round-robin', path },
  { balancing: 'ports', port: 65_532, workers: 4 },
  { balancing: 'shared', port: 65_535, workers: 256 },
  { balancing: 'reuse-port', port: 0, workers: 256 },
  { port: 3_000, admin: { port: 3_001 } },
  { port: 3_000, admin: { port: 0 } },
  { port: 0, admin: { port: 0 } },
  { port: 0, admin: { port: 3_000 } },
  { path, admin: { port: 3_000 } },
  { balancing: 'ports', admin: { port: 3_002 } },
  { balancing: 'ports', admin: { port: 2_999 } },
  { workers: 0, admin: { port: 3_000 } },
])('accepts %j', (options) => {
  expect(() => refuse(options)).not.toThrow();
});

it.each(['shared', 'reuse-port', 'round-robin', 'ports'] as const)(
  'accepts %s without a worker, because there is nothing to balance',
  (balancing) => {
    expect(() => refuse({ balancing, workers: 0, port: 0 }, OLD_MAC)).not.toThrow();
    expect(() => refuse({ balancing, workers: 0, path }, OLD_MAC)).not.toThrow();
  },
);

it('refuses workers on Windows, and runs the app in one process there', () => {
  const windows = { system: 'win32', nodeVersion: '26.0.0' };

  expect(refusal({}, windows)).toBe(
    'invalid options: workers is 2, but Windows has no signals that drain or reload a cluster; use WSL or a container, or set workers: 0',
  );
  expect(() => refuse({ workers: 0 }, windows)).not.toThrow();
});

describe('the strategy reuse-port', () => {
  it.each(['22.12.0', '23.1.0', '24.0.0'])('is accepted on Linux with Node %s', (nodeVersion) => {
    const platform = { system: 'linux', nodeVersion };
    expect(() => refuse({ balancing: 'reuse-port' }, platform)).not.toThrow();
  });

  it.each([
    ['linux', '20.19.0'],
    ['linux', '22.11.0'],
    ['linux', '23.0.0'],
    ['linux', 'unknown'],
    ['darwin', '24.1.0'],
  ])('is refused on %s with Node %s, which it names', (system, nodeVersion) => {
    const message = refusal({ balancing: 'reuse-port' }, { system, nodeVersion });
    expect(message).toContain("balancing 'reuse-port' needs Linux and Node 22.12 or later");
    expect(message).toContain(`this is Node ${nodeVersion} on ${system}`);
    expect(() => refuse({ balancing: 'ports' }, { system, nodeVersion })).not.toThrow();
  });
});

it('the environment may make a conflict, and mend one', () => {
  const resolve = (options: ClusterOptions, env: NodeJS.ProcessEnv) => () =>
    resolveOptions(options, env, () => 4);
  expect(resolve({ path }, { CLUSTER_BALANCING: 'ports' })).toThrow("balancing 'ports' needs");
  const options = { balancing: 'ports', port: 65_533 } as const;
  expect(resolve(options, {})).toThrow('port 65533 and 4 workers');
  expect(resolve(options, { CLUSTER_WORKERS: '3' })).not.toThrow();
  expect(resolve({ ...options, port: 0 }, { CLUSTER_BALANCING: 'shared' })).not.toThrow();
});
