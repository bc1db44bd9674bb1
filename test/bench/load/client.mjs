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

/**
 * Runs a client that is a script of this folder: it is given one object, and what it makes of it
 * is what it writes.
 */
export async function runScript(target, script, parameters) {
  const lines = await runClient(target, process.execPath, [
    fileURLToPath(new URL(script, import.meta.url)),
    JSON.stringify({ port: target.port, ...parameters }),
  ]);
  return JSON.parse(lines.at(-1));
}
