import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('./apps/fibonacci.mjs', import.meta.url));

/** How often a second so many cores compute fibonacci(n) with nothing else to do. */
export async function limitOfCores({ node, n, cores, seconds }) {
  const runs = Array.from({ length: cores }, () => compute(node, n, seconds));
  return (await Promise.all(runs)).reduce((sum, rate) => sum + rate, 0);
}

function compute(node, n, seconds) {
  return new Promise((resolve, reject) => {
    const child = spawn(node, [PROGRAM, String(n), String(seconds)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let text = '';
    child.stdout.on('data', (chunk) => (text += chunk));
    child.on('error', reject);
    child.on('exit', () => resolve(Number(text)));
  });
}
