import { chmodSync, existsSync, mkdirSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, it, vi } from 'vitest';
import { openCompileCache } from '../../../../src/contract/process/compile-cache.js';
import { temporaryDirectory } from '../../../support/temporary-directory.js';

let temporary: string;
let own: string;
let cache: string;

beforeEach(() => {
  temporary = temporaryDirectory();
  own = join(temporary, `nestjs-cluster-${process.geteuid!()}`);
  cache = join(own, 'compile-cache');
  vi.stubEnv('TMPDIR', temporary);
  vi.stubEnv('XDG_RUNTIME_DIR', undefined);
  vi.stubEnv('NODE_DISABLE_COMPILE_CACHE', undefined);
});

/** A Node with a compile cache, which notes the directories that it is given. */
function fakeNode({ status = 1, inUse }: { status?: number; inUse?: string } = {}) {
  const asked: string[] = [];
  return {
    asked,
    getCompileCacheDir: () => inUse,
    enableCompileCache(directory: string) {
      asked.push(directory);
      return { status, message: 'no space' };
    },
  };
}

it('gives Node a resolved directory that only this user can enter', () => {
  const link = join(temporaryDirectory(), 'link');
  symlinkSync(temporary, link);
  vi.stubEnv('TMPDIR', link);
  const node = fakeNode();

  expect(openCompileCache(undefined, node)).toBeUndefined();
  expect(node.asked).toEqual([cache]);
  expect(statSync(cache).mode & 0o777).toBe(0o700);
});

it.each([
  ['its directory', 'is open to other users'],
  ['the parent of it', 'is open to other users; chmod 700 it'],
])('starts without a cache if others could change %s', (which, problem) => {
  mkdirSync(cache, { recursive: true, mode: 0o700 });
  chmodSync(which === 'its directory' ? cache : own, 0o755);
  const node = fakeNode();

  const line = openCompileCache(undefined, node);
  expect(line).toMatch(/^starts without a compile cache: /);
  expect(line).toContain(problem);
  expect(node.asked).toEqual([]);
});

it('starts without a cache, and reports it, if Node cannot use the directory', () => {
  expect(openCompileCache(undefined, fakeNode({ status: 0 }))).toBe(
    `starts without a compile cache: ${cache}: no space`,
  );
});

it('checks the directory of the primary again in a worker', () => {
  openCompileCache(undefined, fakeNode());
  chmodSync(own, 0o777);
  const node = fakeNode();

  expect(openCompileCache(cache, node)).toContain('is writable by other users');
  expect(node.asked).toEqual([]);
});

it.each([
  {
    user: 'NODE_COMPILE_CACHE or the app',
    node: fakeNode({ inUse: '/cache/v24' }),
    env: undefined,
  },
  { user: 'NODE_DISABLE_COMPILE_CACHE', node: fakeNode(), env: '1' },
])('leaves the decision to $user', ({ node, env }) => {
  vi.stubEnv('NODE_DISABLE_COMPILE_CACHE', env);

  expect(openCompileCache(undefined, node)).toBeUndefined();
  expect(node.asked).toEqual([]);
  expect(existsSync(own)).toBe(false);
});

it('does nothing on a Node without a cache', () => {
  expect(openCompileCache(undefined, {})).toBeUndefined();
  expect(existsSync(own)).toBe(false);
});
