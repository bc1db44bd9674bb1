import { ClusterProcess } from '../../support/cluster-process.js';
import { eventually } from '../../support/eventually.js';
import { freePorts } from '../../support/free-ports.js';
import { request } from '../../support/http-client.js';
import { PATIENCE_MS } from '../../support/patience.js';
import { commandLineOf } from '../../support/processes.js';
import type { NestProject } from './nest-project.js';

const SERVICE = 'src/app.service.ts';
const WORKERS = 1;

/** A project under `nest start --watch`. */
export class WatchedProject {
  private constructor(
    private readonly project: NestProject,
    /** The CLI, and everything it has started. */
    readonly cli: ClusterProcess,
    private readonly url: string,
    private readonly source: string,
  ) {}

  static async start(project: NestProject): Promise<WatchedProject> {
    const port = await freePorts(1);
    const cli = new ClusterProcess({
      program: project.path('node_modules/@nestjs/cli/bin/nest.js'),
      args: ['start', '--watch', '--preserveWatchOutput'],
      cwd: project.directory,
      env: { PORT: String(port), CLUSTER_WORKERS: String(WORKERS), NO_COLOR: '1' },
    });
    const source = await project.read(SERVICE);
    return new WatchedProject(project, cli, `http://127.0.0.1:${port}`, source);
  }

  /** Changes the app's answer. The text is put between quotes in its source as it is. */
  say(text: string): Promise<void> {
    return this.project.write({ [SERVICE]: this.source.replace('Hello World!', text) });
  }

  ask(path = '/'): Promise<string> {
    return request(this.url, path).then(({ body }) => body);
  }

  /** Resolves once the app says `text`, and all that runs is one cluster. */
  async settles(text: string): Promise<void> {
    const answer = () => this.ask().catch((error: Error) => error.message);
    await eventually(`'${text}'`, answer, (got) => got === text, PATIENCE_MS).catch((cause) => {
      throw new Error(`${String(cause)}\n${this.cli.output}`);
    });
    const one = ['primary', ...Array.from({ length: WORKERS }, (_, slot) => `worker=${slot}`)];
    await eventually(
      'one cluster',
      () => this.processes(),
      (found) => found.join() === one.join(),
    );
  }

  /** Resolves once a program has begun to start after `before` had begun. */
  async begins(before: number): Promise<void> {
    await this.cli.until('another start', () => this.starts > before);
  }

  /** How many programs have begun to start. */
  get starts(): number {
    return this.cli.all('starting').length;
  }

  /** The processes of all clusters that are alive, by the first word of their titles. */
  processes(): string[] {
    return this.cli
      .survivors()
      .map(titleOf)
      .filter((title) => title.endsWith('nestjs-cluster'))
      .map((title) => title.split(' ')[0]!)
      .sort();
  }

  /** As Ctrl-C does: a terminal signals everything that runs in it. Leaves the project as it was. */
  async interrupt(): Promise<void> {
    for (const pid of this.cli.survivors()) process.kill(pid, 'SIGINT');
    await this.cli.gone();
    await this.say('Hello World!');
  }
}

function titleOf(pid: number): string {
  try {
    return commandLineOf(pid);
  } catch {
    return ''; // the process has ended
  }
}
