import { describe, expect, it } from 'vitest';
import { ClusterConfigurationError } from '../../../../../src/contract/errors/index.js';
import { type ClusterOptions, resolveOptions } from '../../../../../src/contract/options/index.js';
import {
  type Platform,
  refuseConflicts,
} from '../../../../../src/contract/options/check/refuse-conflicts.js';

const LINUX_24: Platform = { system: 'linux', nodeVersion: '24.1.0' };

/** The options as if given alone, with what conflicts for the platform put in afterwards. */
function refuse(options: ClusterOptions, platform = LINUX_24): void {
  const { balancing = 'shared', ...rest } = options;
  const resolved = resolveOptions({ workers: 2, ...rest }, {});
  refuseConflicts(options, { ...resolved, balancing }, platform);
}

/** The message that they are refused with. */
function refusal(options: ClusterOptions, platform = LINUX_24): string {
  try {
    refuse(options, platform);
  } catch (error) {
    expect(error).toBeInstanceOf(ClusterConfigurationError);
    expect((error as Error).message).toMatch(/^invalid options: [^\n]+$/);
    return (error as Error).message;
  }
  throw new Error('the options were accepted');
}

const STRATEGIES = ['shared', 'reuse-port', 'round-robin', 'ports'] as const;

describe('every strategy', () => {
  it.each(STRATEGIES)('is accepted with a port: %s', (balancing) => {
    expect(() => refuse({ balancing, port: 3_000 })).not.toThrow();
  });

  it.each(STRATEGIES)('is accepted with one worker: %s', (balancing) => {
    expect(() => refuse({ balancing, workers: 1 })).not.toThrow();
  });

  it.each(STRATEGIES)(
    'is accepted without a worker, for there is nothing to balance: %s',
    (balancing) => {
      const old = { system: 'darwin', nodeVersion: '20.19.0' };
      expect(() => refuse({ balancing, workers: 0, port: 0 }, old)).not.toThrow();
      expect(() => refuse({ balancing, workers: 0, path: '/run/app.sock' }, old)).not.toThrow();
    },
  );
});

describe('a unix socket', () => {
  it.each(['shared', 'round-robin'] as const)('is accepted with %s', (balancing) => {
    expect(() => refuse({ balancing, path: '/run/app.sock' })).not.toThrow();
  });

  it.each(['reuse-port', 'ports'] as const)('is refused with %s, on any platform', (balancing) => {
    for (const platform of [LINUX_24, { system: 'darwin', nodeVersion: '20.19.0' }]) {
      const message = refusal({ balancing, path: '/run/app.sock' }, platform);
      expect(message).toContain(`balancing '${balancing}' needs a port`);
      expect(message).toContain('path is "/run/app.sock"');
      expect(message).toContain("give a port, or set balancing to 'shared'");
    }
  });
});

describe('the strategy ports', () => {
  it('is refused with port 0: the balancer in front has to know the first', () => {
    const message = refusal({ balancing: 'ports', port: 0 });
    expect(message).toContain("balancing 'ports' needs to know the first port, and port is 0");
    expect(message).toContain('give a port');
    expect(message).toContain('port + k');
  });

  it('is refused so with one worker too: it may be scaled', () => {
    expect(refusal({ balancing: 'ports', port: 0, workers: 1 })).toContain('port is 0');
  });

  it.each([
    [65_535, 1],
    [65_532, 4],
    [65_280, 256],
    [1, 256],
  ])('is accepted with port %d and %d workers', (port, workers) => {
    expect(() => refuse({ balancing: 'ports', port, workers })).not.toThrow();
  });

  it.each([
    [65_535, 2],
    [65_533, 4],
    [65_281, 256],
  ])('is refused with port %d and %d workers', (port, workers) => {
    const message = refusal({ balancing: 'ports', port, workers });
    expect(message).toContain(`port ${port} and ${workers} workers goes beyond port 65535`);
    expect(message).toContain('lower the port or the number of workers');
  });

  it('alone has to have room for all ports', () => {
    for (const balancing of ['shared', 'reuse-port', 'round-robin'] as const) {
      expect(() => refuse({ balancing, port: 65_535, workers: 256 })).not.toThrow();
      expect(() => refuse({ balancing, port: 0, workers: 256 })).not.toThrow();
    }
  });

  it('needs no certain platform', () => {
    const platform = { system: 'darwin', nodeVersion: '20.19.0' };
    expect(() => refuse({ balancing: 'ports', port: 3_000 }, platform)).not.toThrow();
  });
});

describe('the strategy reuse-port', () => {
  it.each(['22.12.0', '22.13.1', '22.99.0', '23.1.0', '23.11.0', '24.0.0', '24.21.3', '26.0.0'])(
    'is accepted on Linux with Node %s',
    (nodeVersion) => {
      expect(() =>
        refuse({ balancing: 'reuse-port' }, { system: 'linux', nodeVersion }),
      ).not.toThrow();
    },
  );

  it.each([
    ['linux', '20.19.0'],
    ['linux', '20.99.0'],
    ['linux', '21.7.3'],
    ['linux', '22.11.0'],
    ['linux', '22.0.0'],
    ['linux', '23.0.0'],
    ['linux', 'unknown'],
    ['darwin', '24.1.0'],
    ['win32', '26.0.0'],
    ['freebsd', '22.12.0'],
  ])('is refused on %s with Node %s, which it names', (system, nodeVersion) => {
    const message = refusal({ balancing: 'reuse-port' }, { system, nodeVersion });
    expect(message).toContain("balancing 'reuse-port' needs Linux and Node 22.12 or later");
    expect(message).toContain(`this is Node ${nodeVersion} on ${system}`);
    expect(message).toContain("set balancing to 'shared', which is the default");
  });
});

describe("the admin listener's port", () => {
  it.each<[string, ClusterOptions]>([
    ['is below the port of the app', { port: 3_000, admin: { port: 2_999 } }],
    ['is above it', { port: 3_000, admin: { port: 3_001 } }],
    ['is chosen by the system', { port: 3_000, admin: { port: 0 } }],
    ['and that of the app are', { port: 0, admin: { port: 0 } }],
    ['is given and that of the app is not', { port: 0, admin: { port: 3_000 } }],
    ['is beside a unix socket', { path: '/run/app.sock', admin: { port: 3_000 } }],
    ['is behind the last of the ports', { balancing: 'ports', admin: { port: 3_002 } }],
    ['is before the first of the ports', { balancing: 'ports', admin: { port: 2_999 } }],
  ])('is accepted where it %s', (_, options) => {
    expect(() => refuse(options)).not.toThrow();
  });

  it('is refused where it is the port of the app', () => {
    const message = refusal({ port: 3_001, admin: { port: 3_001 } });
    expect(message).toContain('admin.port (3001) is a port of the app (port: 3001)');
    expect(message).toContain('give one of them another');
  });

  it('is refused where it is the port that the app has by default', () => {
    expect(refusal({ admin: { port: 3_000 } })).toContain('admin.port (3000)');
  });

  it('is refused whatever the hosts are: the app may listen on all of them', () => {
    const options = { host: '10.0.0.1', port: 3_000, admin: { port: 3_000, host: '::1' } };
    expect(refusal(options)).toContain('admin.port (3000)');
  });

  it.each([3_001, 3_002, 3_003])('is refused as %d, which a worker listens on', (port) => {
    const message = refusal({ balancing: 'ports', port: 3_000, workers: 4, admin: { port } });
    expect(message).toContain(`admin.port (${port}) is a port of the app (port: 3000 to 3003)`);
  });

  it('is not looked at without a worker: nobody listens there', () => {
    expect(() => refuse({ workers: 0, port: 3_000, admin: { port: 3_000 } })).not.toThrow();
  });
});

describe('the platform', () => {
  it('is that of this process where no other is given', () => {
    const resolved = { ...resolveOptions({ workers: 2 }, {}), balancing: 'reuse-port' as const };
    const [major, minor] = process.versions.node.split('.').map(Number) as [number, number];
    const supported = process.platform === 'linux' && (major > 22 || (major === 22 && minor >= 12));
    const check = () => refuseConflicts({}, resolved);
    if (supported) expect(check).not.toThrow();
    else expect(check).toThrow(`this is Node ${process.versions.node} on ${process.platform}`);
  });
});

describe('resolveOptions', () => {
  const refusedWith = (options: ClusterOptions, env: NodeJS.ProcessEnv) => {
    try {
      resolveOptions(options, env, () => 4);
    } catch (error) {
      return (error as Error).message;
    }
    return undefined;
  };

  it('refuses a conflict that the environment makes', () => {
    expect(refusedWith({ path: '/a.sock' }, { CLUSTER_BALANCING: 'ports' })).toContain(
      `balancing 'ports' needs a port, and path is "/a.sock"`,
    );
    expect(refusedWith({ balancing: 'ports', port: 65_530 }, { CLUSTER_WORKERS: '7' })).toContain(
      'port 65530 and 7 workers',
    );
  });

  it('accepts what the environment mends', () => {
    const env = { CLUSTER_BALANCING: 'shared' };
    expect(refusedWith({ balancing: 'ports', port: 0 }, env)).toBeUndefined();
    expect(refusedWith({ balancing: 'ports', port: 0 }, { CLUSTER_WORKERS: '0' })).toBeUndefined();
  });

  it('counts the workers that auto means', () => {
    expect(refusedWith({ balancing: 'ports', port: 65_532 }, {})).toBeUndefined();
    expect(refusedWith({ balancing: 'ports', port: 65_533 }, {})).toContain('4 workers');
  });
});
