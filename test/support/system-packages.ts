import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, it, type TestContext } from 'vitest';
import { plainEnvironment } from './run-command.js';

/** Programs that are not npm's to install, and the packages of Debian that have them. */
const PACKAGES = {
  nginx: 'nginx-light',
  iptables: 'iptables',
  ip6tables: 'iptables',
  ip: 'iproute2',
  promtool: 'prometheus',
  'redis-server': 'redis-server',
  unshare: 'util-linux',
  chromium: 'chromium',
  mount: 'mount',
  prlimit: 'util-linux',
  perl: 'perl-base',
  'systemd-notify': 'systemd',
  'systemd-analyze': 'systemd',
  'systemd-socket-activate': 'systemd',
} as const;

type Program = keyof typeof PACKAGES;

/** The environment for these programs. Debian's PATH of a user lacks the `sbin` folders. */
export const SYSTEM_ENVIRONMENT: NodeJS.ProcessEnv = {
  ...plainEnvironment(),
  PATH: [process.env['PATH'], '/usr/sbin', '/sbin'].join(delimiter),
};

/**
 * `describe()` for tests that need system programs. `ip` also requires network namespaces. If a
 * program is missing, a single test replaces all tests of the suite and says what to install. It is
 * skipped, but in CI it fails.
 */
export function describeWith(programs: readonly Program[], name: string, define: () => void): void {
  const missing = whatIsMissing(programs);
  if (missing === undefined) describe(name, define);
  else describe(name, () => it(missing, (context) => leaveOut(missing, context)));
}

/** Skips a test, because the machine lacks something. In CI the test fails. */
export function leaveOut(missing: string, context: TestContext): never {
  if (process.env['CI'] === 'true') throw new Error(missing);
  console.warn(`skipped: ${context.task.suite?.name}: ${missing}`);
  context.skip(missing);
}

function whatIsMissing(programs: readonly Program[]): string | undefined {
  const absent = programs.filter((program) => !isInstalled(program));
  if (absent.length > 0) {
    const packages = new Set(absent.map((program) => PACKAGES[program]));
    return `needs ${absent.join(', ')}: apt-get install --no-install-recommends ${[...packages].join(' ')}`;
  }
  if (programs.includes('ip') && !mayMakeNamespaces()) {
    return 'needs network namespaces: run it as root, in a container with the capabilities NET_ADMIN and SYS_ADMIN';
  }
  if (programs.includes('unshare') && spawnSync('unshare', ['--mount', 'true']).status !== 0) {
    return 'needs mount namespaces: run it as root, in a container with the capability SYS_ADMIN';
  }
  return undefined;
}

function isInstalled(program: string): boolean {
  const directories = SYSTEM_ENVIRONMENT['PATH']!.split(delimiter);
  return directories.some((directory) => existsSync(join(directory, program)));
}

function mayMakeNamespaces(): boolean {
  const name = `nestjs-cluster-probe-${process.pid}`;
  const ip = (...args: string[]) => spawnSync('ip', args, { env: SYSTEM_ENVIRONMENT });
  try {
    return ip('netns', 'add', name).status === 0;
  } finally {
    ip('netns', 'delete', name);
  }
}
