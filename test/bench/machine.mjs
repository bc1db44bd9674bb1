import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import os from 'node:os';

/** The machine that measures, as far as it matters to who compares. */
export function describeMachine() {
  return {
    cpu: os.cpus()[0]?.model.trim(),
    cores: os.availableParallelism(),
    memoryBytes: os.totalmem(),
    kernel: os.release(),
  };
}

/** The commit that was measured, with a `+` where files differ from it; undefined without git. */
export function readCommit() {
  const git = (...args) =>
    execFileSync('git', args, { cwd: import.meta.dirname, encoding: 'utf8', stdio: 'pipe' }).trim();
  try {
    // Results are written while it measures.
    const changed = git('status', '--porcelain', '--', ':/', ':!results');
    return `${git('rev-parse', '--short', 'HEAD')}${changed ? '+' : ''}`;
  } catch {
    return undefined;
  }
}

const PROJECT_PACKAGES = ['nestjs-cluster', '@nestjs/core', 'express', 'fastify'];
const BENCH_PACKAGES = ['pm2', 'wattpm', 'autocannon', 'loadtest'];

/** Versions of what is compared and of what measures it; what is not installed is left out. */
export function readVersions(nodeVersion) {
  const versions = {
    node: nodeVersion,
    ...packages('../../', PROJECT_PACKAGES),
    ...packages('./', BENCH_PACKAGES),
    nginx: printed('nginx', ['-v'], /nginx\/(\S+)/),
    iptables: printed('iptables', ['--version'], /v(\S+)/),
    wrk: printed('wrk', ['--version'], /^wrk (?:debian\/)?(\S+)/m),
  };
  return Object.fromEntries(Object.entries(versions).filter(([, version]) => version));
}

function packages(folder, names) {
  return Object.fromEntries(
    names.map((name) => {
      const path = name === 'nestjs-cluster' ? 'package.json' : `node_modules/${name}/package.json`;
      try {
        return [name, JSON.parse(readFileSync(new URL(folder + path, import.meta.url))).version];
      } catch {
        return [name, undefined];
      }
    }),
  );
}

/** Programs say their version on one stream or the other, and not all of them end with 0. */
function printed(command, args, pattern) {
  const read = (text) => pattern.exec(String(text))?.[1];
  const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` };
  try {
    return read(execFileSync('sh', ['-c', `${command} ${args.join(' ')} 2>&1`], { env }));
  } catch (error) {
    return read(error.stdout);
  }
}
