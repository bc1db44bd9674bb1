import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { commandLine } from '../support/command-line-here.js';

it.each([
  ['doctor --nope', "unknown option '--nope'"],
  ['doctor --workers 0', 'from 1 to 256'],
  ['tune -- node main.js', "required option '--url <path>'"],
  ['tune --url cats -- node', 'expected a path such as /cats'],
  ['tune --url /cats', "missing required argument 'command'"],
  ['tune --url / --seconds 0.5 -- node', 'from 1 to 3600'],
  ['tune --url / --header nonsense -- node', 'expected a header'],
  ['tune --url / --health-path /a?b -- node', 'expected a path'],
  ['advise --seconds 61', 'from 1 to 60'],
  ['dashboard --port 65536', 'from 1 to 65535'],
  ['nginx --port 3000', "'--port' and '--workers' go together"],
  ['nginx --port 3000 --workers 2 --url http://a/', 'cannot be used with'],
  ['nothing', "unknown command 'nothing'"],
])('refuses wrong usage with exit code 64: %s', async (line, says) => {
  const { code, stdout, stderr } = await commandLine(...line.split(' '));

  expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
  expect(stderr).toContain(says);
});

describe.each(['nginx', 'iptables'])('%s', (command) => {
  const fetching = vi.fn<typeof fetch>();
  const health = (cluster: unknown) =>
    fetching.mockImplementation(async () => Response.json({ details: { cluster } }));
  const CLUSTER = { balancing: 'ports', desired: 2, ports: [3_000, 3_001, 3_002] };
  const portsIn = (text: string): number[] => {
    const ports = /(?:--to-ports |server 127\.0\.0\.1:)(\d+)/g;
    return [...text.matchAll(ports)].map(([, port]) => Number(port));
  };

  beforeEach(() => {
    vi.stubGlobal('fetch', fetching);
    onTestFinished(() => void vi.unstubAllGlobals());
  });

  it('uses the ports of the description', async () => {
    const { stdout } = await commandLine(command, '--port', '3000', '--workers', '3');

    expect(portsIn(stdout)).toEqual([3_000, 3_001, 3_002]);
  });

  it('uses the ports that a running cluster reports, without those of removed slots', async () => {
    health(CLUSTER);

    expect(portsIn((await commandLine(command)).stdout)).toEqual([3_000, 3_001]);
    expect(fetching).toHaveBeenLastCalledWith('http://127.0.0.1:3000/health', expect.anything());
  });

  it('refuses another balancing, and ports beyond the last', async () => {
    health({ ...CLUSTER, balancing: 'shared' });

    expect((await commandLine(command)).stderr).toContain("has balancing 'shared'");
    const { code, stderr } = await commandLine(command, '--port', '65535', '--workers', '2');
    expect([code, stderr]).toEqual([1, expect.stringContaining('go beyond port 65535')]);
  });

  it.each([undefined, { ...CLUSTER, ports: ['3000; rm -rf /', 3_001] }, { ...CLUSTER, ports: [] }])(
    'writes nothing of an answer that is no list of ports: %j',
    async (cluster) => {
      health(cluster);
      const { code, stdout, stderr } = await commandLine(command);

      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toContain('does not show a cluster');
      expect(stderr).not.toContain('rm -rf');
    },
  );

  it('says that no cluster answers', async () => {
    fetching.mockRejectedValue(new Error('fetch failed', { cause: new Error('refused') }));
    const { code, stderr } = await commandLine(command);

    expect([code, stderr]).toEqual([69, expect.stringContaining('/health: refused. Start')]);
  });
});
