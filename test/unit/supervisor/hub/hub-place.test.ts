import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { MAX_PATH_BYTES } from '../../../../src/contract/files/control-address.js';
import { findHubPlace } from '../../../../src/supervisor/hub/hub-place.js';

const FILE = '1234567.0123abcd.hub';

let root: string;
beforeEach(() => void (root = mkdtempSync(join(tmpdir(), 'place-'))));
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(root, { recursive: true });
});

function directory(name: string, variable: string): string {
  const path = join(root, name);
  mkdirSync(path, { mode: 0o700 });
  vi.stubEnv(variable, path);
  return path;
}

describe('the place of a hub', () => {
  it('is the directory of the control socket', () => {
    const runtime = directory('run', 'XDG_RUNTIME_DIR');
    expect(findHubPlace(FILE)).toEqual({
      directory: join(runtime, 'nestjs-cluster'),
      path: join(runtime, 'nestjs-cluster', FILE),
      temporary: false,
    });
  });

  it('is a new directory of its own where a path in that one is too long to connect to', () => {
    const runtime = directory('r'.repeat(70), 'XDG_RUNTIME_DIR');
    const temporary = directory('t', 'TMPDIR');
    const place = findHubPlace(FILE);
    expect(place).toMatchObject({ temporary: true, path: join(place.directory, FILE) });
    expect(place.directory.startsWith(temporary)).toBe(true);
    expect(statSync(place.directory).mode & 0o777).toBe(0o700);
    expect(existsSync(join(runtime, 'nestjs-cluster'))).toBe(false);
  });

  it('has room beside it for the sockets of workers', () => {
    const room = MAX_PATH_BYTES - join(root, 'nestjs-cluster', FILE).length - 1;
    const runtime = directory('r'.repeat(room), 'XDG_RUNTIME_DIR');
    directory('t', 'TMPDIR');
    expect(join(runtime, 'nestjs-cluster', FILE)).toHaveLength(MAX_PATH_BYTES);
    expect(findHubPlace(FILE).temporary).toBe(true);
  });

  it('is absolute with a relative TMPDIR: a worker may have another working directory', () => {
    vi.stubEnv('XDG_RUNTIME_DIR', '');
    const temporary = directory('t', 'TMPDIR');
    vi.stubEnv('TMPDIR', relative(process.cwd(), temporary));
    expect(findHubPlace(FILE).path.startsWith(join(temporary, 'nestjs-cluster-'))).toBe(true);

    rmSync(findHubPlace(FILE).directory, { recursive: true });
    writeFileSync(join(temporary, `nestjs-cluster-${process.geteuid!()}`), '');
    expect(findHubPlace(FILE)).toMatchObject({ temporary: true });
    expect(findHubPlace(FILE).path.startsWith(join(temporary, 'nestjs-cluster-hub-'))).toBe(true);
  });

  it('is none where no directory can be made: it says what to do, in the same words each time', () => {
    vi.stubEnv('XDG_RUNTIME_DIR', '');
    vi.stubEnv('TMPDIR', join(root, 'none'));
    expect(() => findHubPlace(FILE)).toThrow(
      `no directory can be made in ${join(root, 'none')} (ENOENT); set XDG_RUNTIME_DIR or TMPDIR to a directory that can be written`,
    );
  });

  it('is none where every path is too long: it leaves nothing, and says so in the same words each time', () => {
    directory('r'.repeat(70), 'XDG_RUNTIME_DIR');
    const temporary = directory('t'.repeat(70), 'TMPDIR');
    // Workers warn of a reason once.
    const reasons = ['0123abcd', '4567cdef'].map((random) => {
      try {
        return findHubPlace(`1234567.${random}.hub`);
      } catch (error) {
        return (error as Error).message;
      }
    });
    expect(reasons[0]).toBe(reasons[1]);
    expect(reasons[0]).toContain(`a path in ${temporary} is too long for a unix socket (`);
    expect(reasons[0]).toMatch(/set XDG_RUNTIME_DIR or TMPDIR to a shorter directory$/);
    expect(readdirSync(temporary)).toEqual([]);
  });
});
