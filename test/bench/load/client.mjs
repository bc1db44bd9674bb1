import { fileURLToPath } from 'node:url';
import { ProcessGroup } from '../process-group.mjs';

/**
 * Runs a client in a process of its own, from where the system is reached (iptables' rules hold in
 * a network namespace), to its end.
 *
 * @returns the lines it wrote.
 */
export function runClient({ enter }, command, args) {
  return ProcessGroup.begin(async (group) => {
    const [program, ...all] = [...enter, command, ...args];
    try {
      return await group.run(program, all);
    } finally {
      await group.stop();
    }
  });
}

/** Runs `measure()` of a module of this folder in a process of its own. @returns its result. */
export async function measureApart(target, client, parameters) {
  const lines = await runClient(target, process.execPath, [
    fileURLToPath(new URL('process.mjs', import.meta.url)),
    client,
    JSON.stringify({ port: target.port, ...parameters }),
  ]);
  return JSON.parse(lines.at(-1));
}
