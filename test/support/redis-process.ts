import { freePorts } from './free-ports.js';
import { ServerProcess } from './server-process.js';

/** A Redis on 127.0.0.1 that keeps nothing, or all in a directory of the caller's. */
export class RedisProcess {
  #server: ServerProcess | undefined;

  private constructor(
    readonly port: number,
    private readonly directory: string | undefined,
  ) {}

  /** @param directory keeps its data after its end; default: nothing does. */
  static async start(directory?: string): Promise<RedisProcess> {
    const redis = new RedisProcess(await freePorts(1), directory);
    await redis.run();
    return redis;
  }

  get pid(): number {
    return this.#server!.pid;
  }

  /** At the port it has, also after {@link stop}. */
  async run(): Promise<void> {
    const keeps =
      this.directory === undefined
        ? ['--appendonly', 'no']
        : ['--appendonly', 'yes', '--dir', this.directory];
    this.#server = await ServerProcess.start(
      'redis-server',
      ['--port', String(this.port), '--bind', '127.0.0.1', '--save', '', ...keeps],
      (output) => output.includes('Ready to accept connections'),
    );
  }

  async stop(): Promise<void> {
    await this.#server?.stop('SIGKILL');
  }
}
