import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ClusterProcess, NODE, stopAll } from '../support/cluster-process.js';
import { MAIN } from '../support/command-line.js';
import { plainEnvironment } from '../support/run-command.js';
import { SteadyLoad } from '../support/steady-load.js';

const CTRL_C = '\u0003';

describe('each command, while the cluster serves', () => {
  let cluster: ClusterProcess;
  let load: SteadyLoad;
  let directory: string;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'commands-'));
    cluster = await ClusterProcess.start({
      options: { name: 'shop', workers: 2 },
      env: { XDG_RUNTIME_DIR: directory, TMPDIR: directory },
    });
    load = new SteadyLoad(cluster.url, ['/hello'], 50);
  });
  afterAll(async () => {
    await load.stop();
    await stopAll();
    rmSync(directory, { recursive: true });
  });

  /** Runs it to its end, or with Ctrl-C once it has printed `until`. */
  async function run(on: 'terminal' | 'pipe', line: string, until?: RegExp): Promise<string> {
    const [program, args] =
      on === 'pipe'
        ? [NODE, [MAIN, ...line.split(' ')]]
        : ['script', ['-qec', `${NODE} ${MAIN} ${line}`, '/dev/null']];
    const env = { ...plainEnvironment(), XDG_RUNTIME_DIR: directory, TMPDIR: directory };
    const child = spawn(program, args, {
      cwd: directory,
      env: { ...env, TERM: 'xterm' },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    let output = '';
    let interrupted = false;
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
      if (interrupted || !until?.test(output)) return;
      interrupted = true;
      if (on === 'terminal') child.stdin.write(CTRL_C);
      else child.kill('SIGINT');
    });
    const [code, signal] = await new Promise<[number | null, string | null]>((resolve) =>
      child.once('close', (...ended) => resolve(ended)),
    );
    const wellEnded = until === undefined ? code === 0 : [0, 130].includes(code ?? 130);
    expect({ line, on, output, code, signal, wellEnded }).toMatchObject({ wellEnded: true });
    return output;
  }

  it.each(['pipe', 'terminal'] as const)('works in a %s, and costs no request', async (on) => {
    expect(await run(on, 'ps')).toMatch(/shop +\d+ +2\/2 /);
    expect(await run(on, 'status')).toContain('up, 2/2 workers ready');
    await run(on, 'top', /req\/s[^]*req\/s/);
    expect(await run(on, 'cpu-profile 0 -s 1')).toMatch(/worker=0: \/\S+\.cpuprofile; open it/);
    expect(await run(on, 'reload')).toMatch(/reload gen=\d completed/);
    expect(load.lost).toEqual([]);
  });

  // These write the same to a pipe and to a terminal: nothing in them asks which it is.
  it('works, and costs no request', async () => {
    const on = 'pipe';
    expect(await run(on, 'scale +1')).toContain('scaled from 2 to 3 workers');
    expect(await run(on, 'scale -1')).toContain('scaled from 3 to 2 workers');
    expect(await run(on, 'restart 1')).toContain('worker 1 restarted');
    expect(await run(on, 'stack 0')).toMatch(/worker=0 pid=\d+ is not blocked/);
    expect(await run(on, 'heap-profile 1 -s 1')).toMatch(/worker=1: \/\S+\.heapprofile; open it/);
    expect(load.lost).toEqual([]);
  });

  it('ends a cluster that serves as SIGTERM does', async () => {
    await load.stop();
    expect(load.lost).toEqual([]);
    await run('pipe', 'stop');
    expect(await cluster.exit).toMatchObject({ code: 0 });
  });
});
