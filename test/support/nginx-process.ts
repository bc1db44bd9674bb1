import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RawClient } from './raw-client.js';
import { eventually } from './eventually.js';
import { runCommand } from './run-command.js';
import { SYSTEM_ENVIRONMENT } from './system-packages.js';

/** The main configuration that includes `conf.d`. nginx uses no files outside of `directory`. */
function mainFile(directory: string): string {
  // The directory is of this user alone: as root nginx would become another one.
  const user = process.geteuid?.() === 0 ? 'user root;' : '';
  return `
${user}
daemon off;
worker_processes 2;
pid ${directory}/nginx.pid;
error_log stderr info;
events {}
http {
  access_log off;
  client_body_temp_path ${directory}/body;
  proxy_temp_path ${directory}/proxy;
  fastcgi_temp_path ${directory}/fastcgi;
  uwsgi_temp_path ${directory}/uwsgi;
  scgi_temp_path ${directory}/scgi;
  include ${directory}/conf.d/*.conf;
}
`;
}

/** nginx with a configuration of its own, in front of what that names. */
export class NginxProcess {
  readonly url: string;
  /** Everything it wrote, to show when a test fails. */
  output = '';
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;

  private constructor(
    private readonly directory: string,
    port: number,
  ) {
    this.url = `http://127.0.0.1:${port}`;
    this.#child = spawn('nginx', [...argumentsOf(directory)], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: SYSTEM_ENVIRONMENT,
    });
    this.#child.stderr!.setEncoding('utf8').on('data', (chunk: string) => (this.output += chunk));
    this.#ended = once(this.#child, 'close');
  }

  /** Checks `configuration`, a file of `conf.d` that listens on `port`, and runs it. */
  static async start(configuration: string, port: number): Promise<NginxProcess> {
    const directory = mkdtempSync(join(tmpdir(), 'nestjs-cluster-nginx-'));
    let nginx: NginxProcess | undefined;
    try {
      await writeConfiguration(directory, configuration);
      nginx = new NginxProcess(directory, port);
      await eventually('nginx to listen', () => nginx!.#listens());
      return nginx;
    } catch (error) {
      await nginx?.stop();
      rmSync(directory, { recursive: true, force: true });
      throw error;
    }
  }

  /** Ends it, and its own workers with it. */
  async stop(): Promise<void> {
    if (this.#child.exitCode === null) this.#child.kill('SIGTERM');
    await this.#ended;
    rmSync(this.directory, { recursive: true, force: true });
  }

  async #listens(): Promise<boolean> {
    if (this.#child.exitCode !== null) throw new Error(`nginx ended: ${this.output}`);
    try {
      (await RawClient.open(this.url)).destroy();
      return true;
    } catch {
      return false;
    }
  }
}

/** Writes the files, and has nginx look at them. */
async function writeConfiguration(directory: string, configuration: string): Promise<void> {
  mkdirSync(join(directory, 'conf.d'));
  writeFileSync(join(directory, 'nginx.conf'), mainFile(directory));
  writeFileSync(join(directory, 'conf.d/app.conf'), configuration);
  const args = ['-t', ...argumentsOf(directory)];
  const { code, stderr } = await runCommand('nginx', args, {
    cwd: directory,
    env: SYSTEM_ENVIRONMENT,
  });
  if (code !== 0) throw new Error(`nginx -t ended with ${code}\n${stderr}${configuration}`);
  const [, warning] = /^nginx: (\[(?:warn|error)\].*)$/m.exec(stderr) ?? [];
  if (warning !== undefined) throw new Error(`${warning}\n${configuration}`);
}

function argumentsOf(directory: string): string[] {
  return ['-p', directory, '-c', join(directory, 'nginx.conf'), '-e', 'stderr'];
}
