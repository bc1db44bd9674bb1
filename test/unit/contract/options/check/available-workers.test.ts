import { availableParallelism } from 'node:os';
import { describe, expect, it } from 'vitest';
import { availableWorkers } from '../../../../../src/contract/options/check/available-workers.js';
import { readCgroupLimits } from '../../../../../src/contract/options/check/cgroup.js';

const CGROUP = '/sys/fs/cgroup';
const MIB = 1024 * 1024;

/** The limits of a machine that has these files and no other. */
function limitsOf(files: Readonly<Record<string, string>>) {
  return readCgroupLimits((path) => files[path]);
}

function v2(membership: string, files: Readonly<Record<string, string>>) {
  return limitsOf({ '/proc/self/cgroup': `0::${membership}\n`, ...files });
}

const V1_MEMBERSHIP = [
  '12:memory:/docker/abc',
  '11:cpu,cpuacct:/docker/abc',
  '2:cpuset:/docker/abc',
  '1:name=systemd:/docker/abc',
  '',
].join('\n');

function v1(files: Readonly<Record<string, string>>) {
  return limitsOf({ '/proc/self/cgroup': V1_MEMBERSHIP, ...files });
}

describe('the CPU quota of cgroup v2', () => {
  it.each([
    ['25000 100000', 0.25, 1],
    ['99999 100000', 0.99999, 1],
    ['100000 100000', 1, 1],
    ['125000 100000', 1.25, 1],
    ['199999 100000', 1.99999, 1],
    ['250000 100000', 2.5, 2],
    ['400000 50000', 8, 8],
    ['1600000 100000', 16, 8],
    ['max 100000', undefined, 8],
  ])('of %j leaves room for the whole cores in it, out of 8', (text, cpus, workers) => {
    const limits = v2('/', { [`${CGROUP}/cpu.max`]: `${text}\n` });
    expect(limits.cpus).toBe(cpus);
    expect(availableWorkers(limits, 8)).toBe(workers);
  });

  it.each(['', '\n', 'garbage', '100000', '0 100000', '-1 100000', '100000 0', 'max', 'NaN NaN'])(
    'is no limit where the file holds %j',
    (text) => {
      const limits = v2('/', { [`${CGROUP}/cpu.max`]: text });
      expect(limits.cpus).toBeUndefined();
      expect(availableWorkers(limits, 8)).toBe(8);
    },
  );

  it('is the strictest of the group and all groups above it', () => {
    const files = (own: string, parent: string, root: string) => ({
      [`${CGROUP}/a/b/cpu.max`]: `${own} 100000\n`,
      [`${CGROUP}/a/cpu.max`]: `${parent} 100000\n`,
      [`${CGROUP}/cpu.max`]: `${root} 100000\n`,
    });
    expect(v2('/a/b', files('150000', '300000', '600000')).cpus).toBe(1.5);
    expect(v2('/a/b', files('600000', '150000', '300000')).cpus).toBe(1.5);
    expect(v2('/a/b', files('300000', '600000', '150000')).cpus).toBe(1.5);
    expect(v2('/a/b', files('max', '200000', 'max')).cpus).toBe(2);
  });

  it('does not heed the groups beside it', () => {
    expect(
      v2('/a/b', {
        [`${CGROUP}/a/b/cpu.max`]: '300000 100000\n',
        [`${CGROUP}/a/c/cpu.max`]: '50000 100000\n',
      }).cpus,
    ).toBe(3);
  });

  it('is found where a container sees the path of its host', () => {
    expect(
      v2('/system.slice/docker-abc.scope', { [`${CGROUP}/cpu.max`]: '200000 100000\n' }).cpus,
    ).toBe(2);
  });

  it('is found where the group is seen from another cgroup namespace', () => {
    expect(v2('/../../app', { [`${CGROUP}/app/cpu.max`]: '200000 100000\n' }).cpus).toBe(2);
  });

  it('is found for a group with a colon in its name', () => {
    expect(v2('/a:b', { [`${CGROUP}/a:b/cpu.max`]: '200000 100000\n' }).cpus).toBe(2);
  });
});

describe('the CPU quota of cgroup v1', () => {
  const quota = (folder: string, quotaUs: string, periodUs = '100000') => ({
    [`${folder}/cpu.cfs_quota_us`]: `${quotaUs}\n`,
    [`${folder}/cpu.cfs_period_us`]: `${periodUs}\n`,
  });

  it.each([`${CGROUP}/cpu`, `${CGROUP}/cpu,cpuacct`])('is read from %s', (mount) => {
    expect(v1(quota(`${mount}/docker/abc`, '250000')).cpus).toBe(2.5);
    expect(v1(quota(mount, '250000')).cpus).toBe(2.5);
  });

  it('of -1 is no limit', () => {
    const limits = v1(quota(`${CGROUP}/cpu`, '-1'));
    expect(limits.cpus).toBeUndefined();
    expect(availableWorkers(limits, 8)).toBe(8);
  });

  it('of a part of a core leaves one worker', () => {
    expect(availableWorkers(v1(quota(`${CGROUP}/cpu`, '25000')), 8)).toBe(1);
  });

  it('is no limit without its period', () => {
    expect(v1({ [`${CGROUP}/cpu/cpu.cfs_quota_us`]: '100000\n' }).cpus).toBeUndefined();
  });

  it('is the strictest of the group and its ancestors', () => {
    expect(
      v1({
        ...quota(`${CGROUP}/cpu/docker/abc`, '400000'),
        ...quota(`${CGROUP}/cpu/docker`, '150000'),
        ...quota(`${CGROUP}/cpu`, '-1'),
      }).cpus,
    ).toBe(1.5);
  });

  it('is found where systemd runs both versions side by side', () => {
    const limits = limitsOf({
      '/proc/self/cgroup': `${V1_MEMBERSHIP}0::/docker/abc\n`,
      ...quota(`${CGROUP}/cpu,cpuacct/docker/abc`, '300000'),
      [`${CGROUP}/memory/docker/abc/memory.limit_in_bytes`]: `${512 * MIB}\n`,
    });
    expect(limits).toEqual({ cpus: 3, memoryBytes: 512 * MIB });
  });
});

describe('the memory limit', () => {
  it('of cgroup v2 is the strictest of the group and its ancestors', () => {
    expect(
      v2('/a/b', {
        [`${CGROUP}/a/b/memory.max`]: 'max\n',
        [`${CGROUP}/a/memory.max`]: `${300 * MIB}\n`,
        [`${CGROUP}/memory.max`]: `${600 * MIB}\n`,
      }).memoryBytes,
    ).toBe(300 * MIB);
  });

  it.each(['max', '', 'garbage', '-1', '0'])('of cgroup v2 is none where it is %j', (text) => {
    expect(v2('/', { [`${CGROUP}/memory.max`]: `${text}\n` }).memoryBytes).toBeUndefined();
  });

  it('of cgroup v1 is read from the group and from the root of the mount', () => {
    const text = `${256 * MIB}\n`;
    const file = 'memory.limit_in_bytes';
    expect(v1({ [`${CGROUP}/memory/docker/abc/${file}`]: text }).memoryBytes).toBe(256 * MIB);
    expect(v1({ [`${CGROUP}/memory/${file}`]: text }).memoryBytes).toBe(256 * MIB);
  });

  it.each(['9223372036854771712', '9223372036854710272'])(
    'of cgroup v1 is none where it is %s, the largest multiple of a page',
    (text) => {
      expect(
        v1({ [`${CGROUP}/memory/memory.limit_in_bytes`]: `${text}\n` }).memoryBytes,
      ).toBeUndefined();
    },
  );

  it.each([
    [16, 1],
    [128, 1],
    [512, 1],
    [544, 2],
    [1_024, 5],
    [4_096, 8],
  ])('of %d MiB leaves room for %d of 8 workers', (mib, workers) => {
    const limits = v2('/', { [`${CGROUP}/memory.max`]: `${mib * MIB}\n` });
    expect(availableWorkers(limits, 8)).toBe(workers);
  });

  it('and the quota hold together: the stricter one counts', () => {
    expect(availableWorkers({ cpus: 6, memoryBytes: 704 * MIB }, 8)).toBe(3);
    expect(availableWorkers({ cpus: 2, memoryBytes: 704 * MIB }, 8)).toBe(2);
  });
});

describe('no limit is known', () => {
  it.each([
    ['the system has no /proc', {}],
    ['the group is not mounted', { '/proc/self/cgroup': '0::/a/b\n' }],
    ['/proc/self/cgroup is empty', { '/proc/self/cgroup': '' }],
    ['/proc/self/cgroup is garbage', { '/proc/self/cgroup': 'what\n:::\n0:relative\n' }],
  ])('where %s', (_, files) => {
    expect(limitsOf(files)).toEqual({ cpus: undefined, memoryBytes: undefined });
  });
});

describe('workers: auto', () => {
  it('is never below 1 and never above the cores, and always whole', () => {
    for (const cpus of [undefined, 0.01, 0.25, 0.999, 1, 1.25, 3.7, 64, 1e9]) {
      for (const memoryBytes of [undefined, 1, 64 * MIB, 191 * MIB, 1e9, 1e15]) {
        for (const cores of [1, 2, 3, 8, 128]) {
          const workers = availableWorkers({ cpus, memoryBytes }, cores);
          expect(Number.isInteger(workers)).toBe(true);
          expect(workers).toBeGreaterThanOrEqual(1);
          expect(workers).toBeLessThanOrEqual(cores);
        }
      }
    }
  });

  it('is every core where nothing limits it', () => {
    expect(availableWorkers({ cpus: undefined, memoryBytes: undefined }, 12)).toBe(12);
  });

  it('is a number of cores of the machine that the tests run on', () => {
    const workers = availableWorkers();
    expect(workers).toBeGreaterThanOrEqual(1);
    expect(workers).toBeLessThanOrEqual(availableParallelism());
  });
});
