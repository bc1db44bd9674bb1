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

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../..');
const TARGET = join(ROOT, 'docs/assets/terminal.svg');
const PORT = Number(process.env.PORT ?? 3000);
const APP = `http://127.0.0.1:${PORT}`;
const TIMEOUT_MS = 60_000;

const COLUMNS = 116;
const CELL = { width: 7.2, height: 18 };
const PADDING = { x: 16, top: 40, bottom: 14 };
const COLOURS = { 31: '#ff7b72', 32: '#7ee787', 33: '#e3b341' };
const COLOUR_SEQUENCE = new RegExp(`${String.fromCharCode(27)}\\[([\\d;]*)m`);
const TEXT = '#e6edf3';
const DIM = '#8b949e';

const lines = await record();
mkdirSync(dirname(TARGET), { recursive: true });
writeFileSync(TARGET, draw(lines));

async function record() {
  const terminal = spawn(
    'script',
    // SIGHUP reloads only where standard input is no terminal.
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

/** As a terminal of that width shows them. */
function draw(text) {
  const rows = text.flatMap((line) => wrap(cellsOf(line)));
  const width = Math.ceil(2 * PADDING.x + COLUMNS * CELL.width);
  const height = PADDING.top + rows.length * CELL.height + PADDING.bottom;
  const lights = ['#ff5f57', '#febc2e', '#28c840']
    .map((colour, i) => `<circle cx="${20 + 18 * i}" cy="18" r="5.5" fill="${colour}"/>`)
    .join('');
  const drawn = rows.map((row, i) => {
    const y = PADDING.top + (i + 0.75) * CELL.height;
    return runsOf(row)
      .filter(({ text: run }) => run.trim() !== '')
      .map(
        ({ column, text: run, colour }) =>
          `<text x="${round(PADDING.x + column * CELL.width)}" y="${round(y)}" fill="${colour}" ` +
          `textLength="${round(run.length * CELL.width)}">${escape(run)}</text>`,
      )
      .join('');
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="12" style="white-space: pre">
<title>nestjs-cluster in a terminal: a start, a crash and a reload</title>
<rect width="${width}" height="${height}" rx="8" fill="#0d1117"/>
${lights}
${drawn.join('\n')}
</svg>
`;
}

/** Characters with their colours. */
function cellsOf(line) {
  let colour = line.startsWith('# ') ? '#79c0ff' : TEXT;
  return line.split(COLOUR_SEQUENCE).flatMap((part, i) => {
    if (i % 2 === 0) return [...part].map((character) => ({ character, colour }));
    colour = part === '2' ? DIM : (COLOURS[part] ?? TEXT);
    return [];
  });
}

function wrap(cells) {
  const rows = [];
  for (let at = 0; at < cells.length; at += COLUMNS) rows.push(cells.slice(at, at + COLUMNS));
  return rows;
}

/** Neighbours of one colour. */
function runsOf(cells) {
  const runs = [];
  for (const [column, { character, colour }] of cells.entries()) {
    const last = runs.at(-1);
    if (last?.colour === colour && last.column + last.text.length === column)
      last.text += character;
    // A renderer may drop spaces at the beginning of a text.
    else if (character !== ' ') runs.push({ column, text: character, colour });
  }
  return runs;
}

function escape(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function round(value) {
  return Math.round(value * 100) / 100;
}
