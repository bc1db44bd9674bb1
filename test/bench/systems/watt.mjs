import { symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { ProcessGroup } from '../process-group.mjs';
import { serving } from './answers.mjs';
import { livePids, PLAIN_APP, plainEnvironment } from './plain-app.mjs';
import { isBefore, lacksPackage } from './requirements.mjs';

const PACKAGES = fileURLToPath(new URL('../node_modules', import.meta.url));
const COMMAND = path.join(PACKAGES, 'wattpm/bin/cli.js');

/** @type {System} */
export const watt = {
  name: 'watt',
  label: ({ workers }) => `Platformatic Watt, ${workers} workers`,
  abilities: ['reload'],
  async missing({ nodeVersion }) {
    if (isBefore(nodeVersion, [22, 19])) {
      return `Watt needs Node 22.19 or later, this is ${nodeVersion}`;
    }
    return lacksPackage('wattpm') ?? lacksPackage('@platformatic/node');
  },
  start({ node, workers, port, ...options }) {
    return ProcessGroup.begin(async (group) => {
      const folder = group.temporaryFolder();
      writeApplication(folder, { workers, port });
      const env = {
        ...plainEnvironment({ ...options, port }),
        // Its sockets and its compile cache go with the folder.
        HOME: folder,
        TMPDIR: folder,
      };
      // No `wattpm build` before: it would run the app's build script, and the app is built.
      const runtime = group.spawn(node, [COMMAND, 'start', folder], { env, cwd: folder });
      const begun = new Set();
      await runtime.line((line) => {
        const [, worker] = /Started the worker (\d+) of/.exec(line) ?? [];
        if (worker !== undefined) begun.add(worker);
        return begun.size === workers || undefined;
      });
      return serving(group, port, {
        threads: workers,
        workerPids: () => livePids([runtime]),
        async reload() {
          await group.run(node, [COMMAND, 'restart', String(runtime.pid)], { env, cwd: folder });
        },
      });
    });
  },
};

/** As Watt's documentation recommends for Nest: @platformatic/node runs the built main file. */
function writeApplication(folder, { workers, port }) {
  const configuration = {
    module: '@platformatic/node',
    node: { main: PLAIN_APP },
    runtime: { workers, server: { hostname: '127.0.0.1', port } },
  };
  const manifest = { name: 'plain', private: true, type: 'module' };
  writeFileSync(path.join(folder, 'watt.json'), JSON.stringify(configuration));
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify(manifest));
  symlinkSync(PACKAGES, path.join(folder, 'node_modules'));
}
