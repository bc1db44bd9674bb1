import { describe, expect, it } from 'vitest';
import { readOomKills } from '../../../../../src/contract/options/check/cgroup.js';

const CGROUP = '/sys/fs/cgroup';

/** On a machine that has these files and no other. */
const killsIn = (files: Readonly<Record<string, string>>) => readOomKills((path) => files[path]);

const v2 = (membership: string, files: Readonly<Record<string, string>>) =>
  killsIn({ '/proc/self/cgroup': `0::${membership}\n`, ...files });

/** memory.events of cgroup v2. */
const events = (oomKill: number) =>
  `low 0\nhigh 4\nmax 12\noom 3\noom_kill ${oomKill}\noom_group_kill 9\n`;

/** memory.oom_control of cgroup v1, from Linux 4.13. */
const oomControl = (oomKill: number) => `oom_kill_disable 0\nunder_oom 0\noom_kill ${oomKill}\n`;

const V1_MEMBERSHIP = '12:memory:/docker/abc\n11:cpu,cpuacct:/docker/abc\n1:name=systemd:/x\n';

describe('the kills for want of memory in a group of cgroup v2', () => {
  it.each([0, 2, 12_345])('are counted by the kernel: %d', (kills) => {
    expect(v2('/app', { [`${CGROUP}/app/memory.events`]: events(kills) })).toBe(kills);
  });

  it('are those of the group itself, not of those above it', () => {
    const files = {
      [`${CGROUP}/a/b/memory.events`]: events(1),
      [`${CGROUP}/a/memory.events`]: events(50),
      [`${CGROUP}/memory.events`]: events(900),
    };
    expect(v2('/a/b', files)).toBe(1);
  });

  it('are those of the group next above where it has no counter of its own', () => {
    const files = {
      [`${CGROUP}/a/memory.events`]: events(50),
      [`${CGROUP}/memory.events`]: events(900),
    };
    expect(v2('/a/b', files)).toBe(50);
  });

  it('are found where a container sees the path of its host', () => {
    const membership = '/system.slice/docker-abc.scope';
    expect(v2(membership, { [`${CGROUP}/memory.events`]: events(7) })).toBe(7);
  });
});

describe('the kills for want of memory in a group of cgroup v1', () => {
  const v1 = (files: Readonly<Record<string, string>>) =>
    killsIn({ '/proc/self/cgroup': V1_MEMBERSHIP, ...files });

  it.each(['/docker/abc', '/docker', ''])('are counted by the kernel: %s', (path) => {
    expect(v1({ [`${CGROUP}/memory${path}/memory.oom_control`]: oomControl(3) })).toBe(3);
  });

  it('are those of the nearest group', () => {
    const files = {
      [`${CGROUP}/memory/docker/abc/memory.oom_control`]: oomControl(2),
      [`${CGROUP}/memory/memory.oom_control`]: oomControl(80),
    };
    expect(v1(files)).toBe(2);
  });

  it('are not known to an old kernel, whose file has other lines alone', () => {
    const text = 'oom_kill_disable 0\nunder_oom 0\n';
    expect(v1({ [`${CGROUP}/memory/docker/abc/memory.oom_control`]: text })).toBeUndefined();
  });

  it('are found where systemd runs both versions side by side', () => {
    expect(
      killsIn({
        '/proc/self/cgroup': `${V1_MEMBERSHIP}0::/docker/abc\n`,
        [`${CGROUP}/memory/docker/abc/memory.oom_control`]: oomControl(4),
      }),
    ).toBe(4);
  });
});

describe('the kills for want of memory are not known', () => {
  it.each([
    ['the system has no /proc', {}],
    ['the group is not mounted', { '/proc/self/cgroup': '0::/a/b\n' }],
    ['/proc/self/cgroup is garbage', { '/proc/self/cgroup': 'what\n:::\n' }],
    [
      'the file is garbage',
      { '/proc/self/cgroup': '0::/\n', [`${CGROUP}/memory.events`]: 'oom_kill many\n' },
    ],
  ])('where %s', (_, files) => {
    expect(killsIn(files)).toBeUndefined();
  });
});
