// Records docs/assets/top.svg: `nestjs-cluster top` in a pseudo-terminal (`script` of util-linux), over
// the sample app under load, one worker of which was killed.
//
//   npm run build && node docs/tools/record-top.mjs
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { draw } from './draw-terminal.mjs';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../..');
const MAIN = join(ROOT, 'dist/tools/cli/main.js');
/** Waits until the rates show the load. */
const SECONDS = 4;
const CSI = '\u001b[';

const directory = mkdtempSync(join(tmpdir(), 'top-'));
const socket = join(directory, 'c.sock');
const app = spawn(process.execPath, ['sample-app/dist/main.js'], {
  cwd: ROOT,
  env: {
    ...process.env,
    NODE_ENV: 'production',
    PORT: '0',
    CLUSTER_WORKERS: '4',
    SAMPLE_OPTIONS: JSON.stringify({ control: { path: socket } }),
  },
  stdio: ['ignore', 'pipe', 'inherit'],
});
let output = '';
app.stdout.on('data', (chunk) => (output += chunk));
const until = async (pattern) => {
  for (let match; ; await delay(50)) if ((match = pattern.exec(output))) return match;
};
const [, url] = await until(/listening on (http:\S+)/);
await until(/4\/4 workers ready/);
const status = execFileSync(process.execPath, [MAIN, 'status', '--json', '-c', socket]);
process.kill(JSON.parse(status).cluster.workers[2].pid, 'SIGKILL');

let loaded = true;
const ask = async (client) => {
  while (loaded) {
    await fetch(`${url}/${client % 2 ? 'hello' : 'fib/20'}`).then((response) => response.text());
    await delay(20);
  }
};
const clients = Array.from({ length: 8 }, (_, client) => ask(client).catch(() => {}));
const terminal = spawn(
  'script',
  ['-qec', `stty cols 116 rows 12; exec ${process.execPath} ${MAIN} top -c ${socket}`, '/dev/null'],
  { env: { ...process.env, TERM: 'xterm-256color' }, stdio: ['pipe', 'pipe', 'inherit'] },
);
let screen = '';
terminal.stdout.setEncoding('utf8').on('data', (chunk) => (screen += chunk));
while (!frameOf(screen).some((line) => line.startsWith('up, 4/4')) || !screen.includes('killed')) {
  await delay(100);
}
await delay(SECONDS * 1_000);
terminal.stdin.end('q');
await new Promise((resolve) => terminal.once('close', resolve));
loaded = false;
await Promise.all(clients);
app.kill('SIGTERM');
await new Promise((resolve) => app.once('exit', resolve));
rmSync(directory, { recursive: true });

const lines = frameOf(screen);
writeFileSync(
  join(ROOT, 'docs/assets/top.svg'),
  draw('nestjs-cluster top', ['# npx nestjs-cluster top', ...lines]),
);
console.log(lines.join('\n'));

/** The last frame, before the terminal was restored. */
function frameOf(text) {
  const frame = text.split(`${CSI}?25h`)[0].split(`${CSI}H`).at(-1);
  return frame.replaceAll(`${CSI}K`, '').replaceAll(`${CSI}J`, '').split(/\r?\n/);
}
