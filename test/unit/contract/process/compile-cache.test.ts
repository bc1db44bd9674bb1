import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { keepCompiled, openCompileCache } from '../../../../src/contract/process/compile-cache.js';
import { temporaryDirectory } from '../../../support/temporary-directory.js';

let root: string;
let app: string;

beforeEach(() => {
  root = temporaryDirectory();
  app = join(root, 'app');
  mkdirSync(join(app, 'node_modules'), { recursive: true });
  mkdirSync(join(root, 'tmp'), { mode: 0o1777 });
  vi.stubEnv('TMPDIR', join(root, 'tmp'));
});

afterEach(() => vi.unstubAllEnvs());

const main = () => join(app, 'dist/main.js');
const ofApp = () => join(app, 'node_modules/.cache/nestjs-cluster');
const temporary = () => join(root, 'tmp', `nestjs-cluster-${process.geteuid!()}`, 'compile-cache');

/** A Node with a compile cache, which notes the directories that it is given. */
function fakeNode(refuses: readonly string[] = []) {
  const asked: string[] = [];
  return {
    asked,
    enableCompileCache(directory: string) {
      asked.push(directory);
      return refuses.includes(directory) ? { status: 0, message: 'no space' } : { status: 1 };
    },
  };
}

it('uses a directory in the node_modules of the app, which only this user can read', () => {
  const node = fakeNode();

  expect(openCompileCache(main(), {}, node)).toBeUndefined();
  expect(node.asked).toEqual([ofApp()]);
  expect(statSync(ofApp()).mode & 0o777).toBe(0o700);
});

it('uses the temporary directory if another user can write to the directory of the app', () => {
  mkdirSync(ofApp(), { recursive: true });
  chmodSync(ofApp(), 0o777);
  const node = fakeNode();

  expect(openCompileCache(main(), {}, node)).toBeUndefined();
  expect(node.asked).toEqual([temporary()]);
});

it('uses the temporary directory if Node cannot write to the directory of the app', () => {
  const node = fakeNode([ofApp()]);

  expect(openCompileCache(main(), {}, node)).toBeUndefined();
  expect(node.asked).toEqual([ofApp(), temporary()]);
});

it('says in one line that it starts without a cache, and why', () => {
  const node = fakeNode([ofApp(), temporary()]);

  expect(openCompileCache(main(), {}, node)).toBe(
    `starts without a compile cache: ${temporary()}: no space`,
  );
});

it.each(['NODE_COMPILE_CACHE', 'NODE_DISABLE_COMPILE_CACHE'])('leaves it to %s', (name) => {
  const node = fakeNode();

  expect(openCompileCache(main(), { [name]: '1' }, node)).toBeUndefined();
  expect(node.asked).toEqual([]);
});

it('does nothing on a Node without a cache', () => {
  expect(openCompileCache(main(), {}, {})).toBeUndefined();
  expect(existsSync(ofApp())).toBe(false);
});

it('removes the oldest files of a cache that has become too large', async () => {
  const version = join(root, 'cache/v24');
  mkdirSync(version, { recursive: true });
  for (let n = 0; n < 10; n += 1) {
    writeFileSync(join(version, `${n}`), 'x'.repeat(100));
    utimesSync(join(version, `${n}`), n, n);
  }
  const flush = vi.fn();
  const node = { getCompileCacheDir: () => version, flushCompileCache: flush };

  await keepCompiled(node, 1_000);
  expect(readdirSync(version)).toHaveLength(10);

  await keepCompiled(node, 999);
  expect(readdirSync(version)).toEqual(['6', '7', '8', '9']);
  expect(flush).toHaveBeenCalledTimes(2);
});

it("removes nothing of the user's own directory", async () => {
  const version = join(root, 'cache/v24');
  mkdirSync(version, { recursive: true });
  writeFileSync(join(version, 'a'), 'x');
  vi.stubEnv('NODE_COMPILE_CACHE', join(root, 'cache'));

  await keepCompiled({ getCompileCacheDir: () => version }, 0);
  expect(readdirSync(version)).toEqual(['a']);
});
