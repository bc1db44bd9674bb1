import { describe, expect, it } from 'vitest';
import {
  availableWorkers,
  readCgroupLimits,
  readOomKills,
} from '../../../../src/contract/process/machine.js';

const MIB = 1024 * 1024;

type Files = Readonly<Record<string, string>>;

/** The groups of a process in cgroup v1. */
const V1 = [
  '12:memory:/docker/abc',
  '11:cpu,cpuacct:/docker/abc',
  '2:cpuset:/docker/abc',
  '1:name=systemd:/docker/abc',
  '',
].join('\n');

const v2 = (membership: string) => `0::${membership}\n`;

/** The limits of a machine that has these files of cgroups and no other. */
function read(membership: string | undefined, files: Files) {
  const all = Object.entries(files).map(([path, text]) => [`/sys/fs/cgroup${path}`, `${text}\n`]);
  const texts = { ...Object.fromEntries(all), '/proc/self/cgroup': membership } as Files;
  const readFile = (path: string) => texts[path];
  return { ...readCgroupLimits(readFile), oomKills: readOomKills(readFile) };
}

const quota = (folder: string, quotaUs: number, periodUs = 100_000): Files => ({
  [`${folder}/cpu.cfs_quota_us`]: `${quotaUs}`,
  [`${folder}/cpu.cfs_period_us`]: `${periodUs}`,
});

const NO_QUOTAS = [
  'max 100000',
  'max',
  '',
  'garbage',
  '100000',
  '0 100000',
  '-1 100000',
  '100000 0',
];

describe('the CPU quota', () => {
  it.each<[text: string, cpus: number]>([
    ['250000 100000', 2.5],
    ['400000 50000', 8],
    ...NO_QUOTAS.map((text): [string, number] => [text, Infinity]),
  ])('of cgroup v2 with %j is %s', (text, cpus) => {
    expect(read(v2('/'), { '/cpu.max': text }).cpus).toBe(cpus);
  });

  it.each<[what: string, membership: string, files: Files, cpus: number]>([
    ['its own', '/a/b', { '/a/b': '150000', '/a': '300000', '': '600000' }, 1.5],
    ['its parent', '/a/b', { '/a/b': '600000', '/a': '150000', '': '300000' }, 1.5],
    ['the root', '/a/b', { '/a/b': '300000', '/a': '600000', '': '150000' }, 1.5],
    ['the only one', '/a/b', { '/a/b': 'max', '/a': '200000', '': 'max' }, 2],
    ['none beside it', '/a/b', { '/a/b': '300000', '/a/c': '50000' }, 3],
    ['by the path of its host', '/system.slice/docker-abc.scope', { '': '200000' }, 2],
    ['from another namespace', '/../../app', { '/app': '200000' }, 2],
    ['with a colon in its name', '/a:b', { '/a:b': '200000' }, 2],
  ])('of cgroup v2 is that of the strictest group: %s', (_, membership, files, cpus) => {
    const quotas = Object.entries(files).map(([path, us]) => [`${path}/cpu.max`, `${us} 100000`]);
    expect(read(v2(membership), Object.fromEntries(quotas) as Files).cpus).toBe(cpus);
  });

  it.each<[what: string, files: Files, cpus: number]>([
    ['its own', quota('/cpu/docker/abc', 250_000), 2.5],
    ['of the mount', quota('/cpu', 250_000), 2.5],
    ['none for -1', quota('/cpu', -1), Infinity],
    ['none without a period', { '/cpu/cpu.cfs_quota_us': '100000' }, Infinity],
    [
      'that of the strictest group',
      {
        ...quota('/cpu/docker/abc', 400_000),
        ...quota('/cpu/docker', 150_000),
        ...quota('/cpu', -1),
      },
      1.5,
    ],
  ])('of cgroup v1 is %s', (_, files, cpus) => {
    expect(read(V1, files).cpus).toBe(cpus);
  });
});

describe('the memory limit', () => {
  it('of cgroup v2 is the strictest of the group and its ancestors', () => {
    const files = {
      '/a/b/memory.max': 'max',
      '/a/memory.max': `${300 * MIB}`,
      '/memory.max': `${600 * MIB}`,
    };
    expect(read(v2('/a/b'), files).memoryBytes).toBe(300 * MIB);
  });

  it.each(['max', '', 'garbage', '-1', '0'])('of cgroup v2 is none where it is %j', (text) => {
    expect(read(v2('/'), { '/memory.max': text }).memoryBytes).toBe(Infinity);
  });

  it.each([
    ['/docker/abc', `${256 * MIB}`, 256 * MIB],
    ['', `${256 * MIB}`, 256 * MIB],
    ['', '9223372036854771712', Infinity], // the largest multiple of a page
  ])('of cgroup v1, in "%s", of %s is %s', (path, text, bytes) => {
    const files = { [`/memory${path}/memory.limit_in_bytes`]: text };
    expect(read(V1, files).memoryBytes).toBe(bytes);
  });
});

describe('the kills for want of memory', () => {
  /** memory.events of cgroup v2. */
  const events = (oomKill: number | string) =>
    `low 0\nhigh 4\nmax 12\noom 3\noom_kill ${oomKill}\noom_group_kill 9`;
  /** memory.oom_control of cgroup v1, from Linux 4.13. */
  const oomControl = (oomKill: number) => `oom_kill_disable 0\nunder_oom 0\noom_kill ${oomKill}`;

  it.each<[what: string, membership: string, files: Files, kills: number]>([
    ['many', '/app', { '/app': events(12_345) }, 12_345],
    ['its own', '/a/b', { '/a/b': events(1), '/a': events(50), '': events(900) }, 1],
    ['the group next above', '/a/b', { '/a': events(50), '': events(900) }, 50],
    ['by the path of its host', '/system.slice/docker-abc.scope', { '': events(7) }, 7],
  ])('in a group of cgroup v2 are those of the nearest: %s', (_, membership, files, kills) => {
    const counters = Object.entries(files).map(([path, text]) => [`${path}/memory.events`, text]);
    expect(read(v2(membership), Object.fromEntries(counters) as Files).oomKills).toBe(kills);
  });

  it.each<[what: string, files: Files, kills: number | undefined]>([
    ['its own', { '/docker/abc': oomControl(2), '': oomControl(80) }, 2],
    ['the group above', { '/docker': oomControl(3) }, 3],
    ['the mount', { '': oomControl(3) }, 3],
    ['not known to an old kernel', { '/docker/abc': 'oom_kill_disable 0\nunder_oom 0' }, undefined],
  ])('in a group of cgroup v1 are those of the nearest: %s', (_, files, kills) => {
    const counters = Object.entries(files).map(([path, text]) => [
      `/memory${path}/memory.oom_control`,
      text,
    ]);
    expect(read(V1, Object.fromEntries(counters) as Files).oomKills).toBe(kills);
  });
});

it('all is found where systemd runs both versions side by side', () => {
  expect(
    read(`${V1}0::/docker/abc\n`, {
      ...quota('/cpu/docker/abc', 300_000),
      '/memory/docker/abc/memory.limit_in_bytes': `${512 * MIB}`,
      '/memory/docker/abc/memory.oom_control': 'oom_kill 4',
    }),
  ).toEqual({ cpus: 3, memoryBytes: 512 * MIB, oomKills: 4 });
});

it.each<[what: string, membership: string | undefined, files?: Files]>([
  ['the system has no /proc', undefined],
  ['the group is not mounted', '0::/a/b\n'],
  ['/proc/self/cgroup is empty', ''],
  ['/proc/self/cgroup is garbage', 'what\n:::\n0:relative\n'],
  ['the files are garbage', '0::/\n', { '/memory.events': 'oom_kill many', '/cpu.max': 'many' }],
])('nothing is known where %s', (_, membership, files = {}) => {
  expect(read(membership, files)).toEqual({
    cpus: Infinity,
    memoryBytes: Infinity,
    oomKills: undefined,
  });
});

it.each([
  [0.25, Infinity, 1],
  [1.99999, Infinity, 1],
  [2.5, Infinity, 2],
  [8, Infinity, 8],
  [16, Infinity, 8],
  [Infinity, Infinity, 8],
  [Infinity, 16, 1],
  [Infinity, 512, 1],
  [Infinity, 544, 2],
  [Infinity, 1_183, 4],
  [Infinity, 1_184, 5],
  [Infinity, 4_096, 8],
  [6, 704, 3],
  [2, 704, 2],
])('workers: auto with %s cores and %s MiB is %d on a machine of 8', (cpus, mib, workers) => {
  expect(availableWorkers({ cpus, memoryBytes: mib * MIB }, 8)).toBe(workers);
});
