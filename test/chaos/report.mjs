import { median } from '../bench/statistics.mjs';

/** Maximum number of losses, and of other problems, that are printed. The JSON file has all. */
const SHOWN = 15;

/** Prints a verdict. */
export function print({ seed, ok, faults, clients, flat, unallowed, problems, ...verdict }) {
  // Recovery begins when the fault is over: the worker has died, the primary runs again.
  console.table(
    faults.map(({ name, count, recoveryMs }) => {
      const known = recoveryMs.filter(Number.isFinite);
      if (known.length === 0) return { fault: name, count };
      return { fault: name, count, 'recovery, ms': median(known), 'at most': Math.max(...known) };
    }),
  );
  console.table(clients);
  if (flat.length > 0) console.table(flat);
  console.log('allowed losses, by cause:', verdict.allowed, 'scrapes:', verdict.scrapes);
  for (const found of [unallowed, problems]) {
    if (found.length > 0)
      console.log(`${found.length} ${found === problems ? 'other ' : ''}problems`);
    for (const one of found.slice(0, SHOWN)) console.log({ ...one, lines: one.lines?.slice(-8) });
  }
  if (!ok) console.log('the last lines of the cluster', verdict.lastLines);
  console.log(ok ? `held (seed ${seed})` : `did not hold (seed ${seed})`);
}
