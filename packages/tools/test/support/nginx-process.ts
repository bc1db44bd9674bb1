import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RawClient } from '../../../../test/support/raw-client.js';
import { runCommand } from '../../../../test/support/run-command.js';
import { ServerProcess } from '../../../../test/support/server-process.js';
import { SYSTEM_ENVIRONMENT } from '../../../../test/support/system-packages.js';

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

/** nginx with a configuration of its own, in front of the servers in it. */
export class NginxProcess {
  private constructor(
    private readonly server: ServerProcess,
    private readonly directory: string,
    readonly url: string,
  ) {}

  get output(): string {
    return this.server.output;
  }

  /** Checks `configuration`, a file of `conf.d` that listens on `port`, and runs it. */
  static async start(configuration: string, port: number): Promise<NginxProcess> {
    const directory = mkdtempSync(join(tmpdir(), 'nestjs-cluster-nginx-'));
    const url = `http://127.0.0.1:${port}`;
    const listens = async () => {
      const client = await RawClient.open(url).catch(() => undefined);
      client?.destroy();
      return client !== undefined;
    };
    const args = ['-p', directory, '-c', join(directory, 'nginx.conf'), '-e', 'stderr'];
    try {
      mkdirSync(join(directory, 'conf.d'));
      writeFileSync(join(directory, 'nginx.conf'), mainFile(directory));
      writeFileSync(join(directory, 'conf.d/app.conf'), configuration);
      await check(['-t', ...args], configuration);
      const server = await ServerProcess.start('nginx', args, listens);
      return new NginxProcess(server, directory, url);
    } catch (error) {
      rmSync(directory, { recursive: true, force: true });
      throw error;
    }
  }

  async stop(): Promise<void> {
    await this.server.stop();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** Has nginx look at its files. */
async function check(args: readonly string[], configuration: string): Promise<void> {
  const options = { cwd: tmpdir(), env: SYSTEM_ENVIRONMENT };
  const { code, stderr } = await runCommand('nginx', args, options);
  if (code !== 0) throw new Error(`nginx -t ended with ${code}\n${stderr}${configuration}`);
  const [, warning] = /^nginx: (\[(?:warn|error)\].*)$/m.exec(stderr) ?? [];
  if (warning !== undefined) throw new Error(`${warning}\n${configuration}`);
}
