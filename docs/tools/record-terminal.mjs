// Records docs/assets/terminal.svg: runs the sample app in a pseudo-terminal (`script` of
// util-linux), has one worker crash, reloads, and draws the cluster's own lines. Nest's lines and
// the stack of the crash are left out; the path of this repository is shortened to /app, the commands
// are added as comments.
//
//   npm run build && node docs/tools/record-terminal.mjs
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { draw } from './draw-terminal.mjs';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../..');
const TARGET = join(ROOT, 'docs/assets/terminal.svg');
const PORT = Number(process.env.PORT ?? 3000);
const APP = `http://127.0.0.1:${PORT}`;
const TIMEOUT_MS = 60_000;

const lines = await record();
mkdirSync(dirname(TARGET), { recursive: true });
writeFileSync(TARGET, draw('nestjs-cluster in a terminal: a start, a crash and a reload', lines));

async function record() {
  const terminal = spawn(
    'script',
    // SIGHUP reloads only if standard input is not a terminal.
    ['-qfc', 'exec node sample-app/dist/main.js < /dev/null', '/dev/null'],
    {
      cwd: ROOT,
      env: {
        ...process.env,
        TERM: 'xterm-256color',
        NODE_ENV: 'production',
        PORT: String(PORT),
        CLUSTER_WORKERS: '2',
        SAMPLE_FAULTS: '1',
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  let output = '';
  terminal.stdout.on('data', (chunk) => (output += chunk));
  const shown = [`# CLUSTER_WORKERS=2 node dist/main.js`];
  let taken = 0;
  /** Takes lines until that many have matched. */
  const until = async (pattern, times = 1) => {
    const deadline = performance.now() + TIMEOUT_MS;
    let matched;
    for (let found = 0; found < times;) {
      const whole = output.split('\n').slice(0, -1);
      const line = whole[taken];
      if (line === undefined) {
        if (performance.now() > deadline) throw new Error(`no ${pattern} in:\n${output}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
        continue;
      }
      taken += 1;
      if (!line.includes('[cluster]')) continue;
      shown.push(line.trimEnd().replaceAll(pathToFileURL(ROOT).href, 'file:///app'));
      const match = pattern.exec(line);
      if (match === null) continue;
      found += 1;
      matched = match;
    }
    return matched;
  };
  await until(/listening on/);
  shown.push(`# curl ${APP}/faults/crash`);
  await fetch(`${APP}/faults/crash`, { headers: { connection: 'close' } });
  const [, worker] = await until(/pid=(\d+) ready/);
  const primary = Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${worker}/status`, 'utf8'))[1]);
  shown.push('# kill -HUP <primary>');
  process.kill(primary, 'SIGHUP');
  await until(/reload gen=1 completed/);
  process.kill(primary, 'SIGTERM');
  await new Promise((resolve) => terminal.once('close', resolve));
  return shown;
}
