import { median } from '../bench/statistics.mjs';

/** Maximum number of losses, and of other problems, that are printed. The JSON file has all. */
const SHOWN = 15;

/** Prints a verdict. */
export function print({ seed, ok, faults, clients, unallowed, problems, ...verdict }) {
  // Recovery begins when the fault is over: the worker has died, the primary runs again.
  console.table(
    faults.map(({ name, count, recoveryMs }) => {
      const known = recoveryMs.filter(Number.isFinite);
      if (known.length === 0) return { fault: name, count };
      const [middle, most] = [median(known), Math.max(...known)];
      return { fault: name, count, 'recovery, ms': middle, 'at most': most };
    }),
  );
  console.table(clients);
  if (verdict.flat.length > 0) console.table(verdict.flat);
  console.log('allowed losses, by cause:', verdict.allowed, 'scrapes:', verdict.scrapes);
  if (unallowed.length > 0) console.log(`${unallowed.length} losses that nothing allows:`);
  for (const loss of unallowed.slice(0, SHOWN)) {
    const { at, since, client, outcome, what, pid, answered, after, lines } = loss;
    const owner = pid ?? (answered ? 'not told' : 'unknown');
    console.log(
      `  ${time(at)} after ${after}: ${client}: ${outcome}, ${what}; worker ${owner}, since ${at - since} ms`,
    );
    lines.slice(-8).forEach(printLine);
  }
  if (problems.length > 0) console.log(`${problems.length} other problems:`);
  for (const { at, what, after } of problems.slice(0, SHOWN)) {
    console.log(`  ${at ? `${time(at)} after ${after}: ` : ''}${what}`);
  }
  if (!ok) verdict.lastLines.forEach(printLine);
  console.log(ok ? `held (seed ${seed})` : `did not hold (seed ${seed})`);
}

function printLine({ at, text }) {
  console.log(`      ${time(at)} ${text.slice(0, 160)}`);
}

function time(at) {
  return new Date(at).toISOString().slice(11, 23);
}
