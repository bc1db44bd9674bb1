// The sample app's own function, over and over: node fibonacci.mjs <n> <seconds>
import { fibonacci } from '../../../sample-app/dist/cpu/fibonacci.js';

const [n, seconds] = process.argv.slice(2).map(Number);
fibonacci(n); // V8 has compiled it
const startedAt = performance.now();
let count = 0;
while (performance.now() - startedAt < seconds * 1_000) {
  fibonacci(n);
  count += 1;
}
process.stdout.write(String((count * 1_000) / (performance.now() - startedAt)));
