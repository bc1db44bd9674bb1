// Scrapes a cluster whose workers and hub end, hang and are replaced. `promtool check metrics` and the
// strict parser of prometheus_client read every page. Options: --rounds 3.
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs, promisify } from 'node:util';
import { Cluster } from '../cluster.mjs';
import { needs, pythonPackages } from '../install.mjs';
import { Verdict } from '../verdict.mjs';

const { values: options } = parseArgs({ options: { rounds: { type: 'string', default: '3' } } });
const here = import.meta.dirname;
needs('promtool', 'prometheus');
const python = join(pythonPackages('scrapes', ['prometheus_client==0.26.0']), 'python');

const cluster = await Cluster.start({
  app: join(here, '../../fixtures/behaviours/hard-metrics.mjs'),
  execArgv: ['--import', join(here, '../../fixtures/preload/hub-thread.mjs')],
  options: {
    workers: 3,
    admin: { port: 0 },
    hangTimeoutMs: 4_000,
  },
});
const directory = mkdtempSync(join(tmpdir(), 'scrapes-'));
const anyPid = () => [...cluster.workers.values()][Math.floor(Math.random() * 3)];
const replaced = (pid) => () => ![...cluster.workers.values()].includes(pid);
const faults = {
  async 'a worker is killed'() {
    const pid = anyPid();
    process.kill(pid, 'SIGKILL');
    await cluster.until('another worker', replaced(pid));
  },
  async 'two workers are killed'() {
    const [one, two] = [...cluster.workers.values()];
    for (const pid of [one, two]) process.kill(pid, 'SIGKILL');
    await cluster.until('other workers', () => replaced(one)() && replaced(two)());
  },
  async 'a worker hangs'() {
    const pid = anyPid();
    process.kill(pid, 'SIGSTOP');
    await cluster.until('another worker', replaced(pid));
  },
  async 'the primary is stopped'() {
    cluster.child.kill('SIGSTOP');
    await delay(700);
    cluster.child.kill('SIGCONT');
  },
  async 'a reload'() {
    const last = cluster.event('reload-ended');
    cluster.child.kill('SIGHUP');
    await cluster.until('a reload', () => cluster.event('reload-ended') !== last, 90_000);
  },
  'the hub ends': () => cluster.child.kill('SIGURG'),
};

/** @returns what promtool finds wrong in a page; `undefined` if nothing. */
async function lint(path) {
  const checked = promisify(execFile)('sh', ['-c', `promtool check metrics < ${path}`]);
  const { code = 0, stderr } = await checked.catch((error) => error);
  return code === 0 && stderr === '' ? undefined : `${stderr} ${path}`;
}

const PRIMARY_IS_SILENT = /^nestjs_cluster_snapshot_age_seconds (?!0$)/m;

let done = false;
const pages = [];
const problems = [];
/**
 * Asks two at a time: the public listener's worker, and the admin listener. Checks each page before
 * the next scrape, so that a slow machine has fewer pages to check.
 */
async function scrape(url) {
  while (!done) {
    const response = await fetch(`${url}/metrics`, { headers: { connection: 'close' } }).catch(
      (error) => ({ error }),
    );
    const text = await response.text?.().catch(() => undefined);
    // A worker that is killed takes the connections with it that it had accepted.
    if (text === undefined && url === cluster.url) continue;
    if (response.status !== 200)
      problems.push(`${url}: ${response.status ?? response.error.cause}`);
    // A worker whose primary does not answer in time knows only the last state of the cluster.
    else if (!text.includes('# TYPE cats_total counter') && !PRIMARY_IS_SILENT.test(text))
      problems.push(`${url}: none of the app`);
    const page = { path: join(directory, `${pages.length}.txt`) };
    pages.push(page);
    writeFileSync(page.path, text ?? '');
    page.problem = await lint(page.path);
    await delay(200);
  }
}
const scraping = Promise.all([scrape(cluster.adminUrl), scrape(cluster.url), scrape(cluster.url)]);
for (let round = 0; round < options.rounds; round += 1) {
  for (const fault of Object.values(faults)) {
    await fault();
    await delay(300);
  }
}
done = true;
await scraping;
const code = await cluster.stop();

const verdict = new Verdict();
verdict.add('every scrape has an answer', problems.length > 0 ? problems.join('\n') : undefined);
verdict.add('the cluster ends', code === 0 ? undefined : `it ended with ${code}`);
const input = pages.map(({ path }) => path).join('\n');
const strict = spawnSync(python, [join(here, 'check.py')], { input, encoding: 'utf8' });
const answers = strict.stdout.split('\n');
for (const [n, { path, problem }] of pages.entries()) {
  verdict.add(
    `strict parser, scrape ${n}`,
    answers[n] === '' ? undefined : `${answers[n]} ${path}`,
  );
  verdict.add(`promtool, scrape ${n}`, problem);
}
console.log(`${pages.length} scrapes, ${options.rounds} × ${Object.keys(faults).join(', ')}`);
verdict.end();
if (!process.exitCode) rmSync(directory, { recursive: true });
