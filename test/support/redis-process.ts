import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { freePorts } from './free-ports.js';
import { SYSTEM_ENVIRONMENT } from './system-packages.js';

/** A Redis on 127.0.0.1 that keeps nothing, or all in a directory of the caller's. */
export class RedisProcess {
  #child!: ChildProcess;
  #ended: Promise<unknown> = Promise.resolve();

  private constructor(
    readonly port: number,
    private readonly directory: string | undefined,
  ) {}

  /** @param directory where what it holds outlives it; default: nothing does. */
  static async start(directory?: string): Promise<RedisProcess> {
    const redis = await RedisProcess.prepare(directory);
    await redis.run();
    return redis;
  }

  /** One that does not run yet. */
  static async prepare(directory?: string): Promise<RedisProcess> {
    return new RedisProcess(await freePorts(1), directory);
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** At the port it has, also after {@link stop}. */
  async run(): Promise<void> {
    const keeps =
      this.directory === undefined
        ? ['--appendonly', 'no']
        : ['--appendonly', 'yes', '--dir', this.directory];
    const args = ['--port', String(this.port), '--bind', '127.0.0.1', '--save', '', ...keeps];
    const child = spawn('redis-server', args, {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: SYSTEM_ENVIRONMENT,
    });
    this.#child = child;
    this.#ended = once(child, 'close');
    let output = '';
    await new Promise<void>((resolve, reject) => {
      child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
        output += chunk;
        if (output.includes('Ready to accept connections')) resolve();
      });
      child.once('error', reject);
      child.once('close', () => reject(new Error(`redis-server ended\n${output}`)));
    });
  }

  async stop(): Promise<void> {
    this.#child?.kill('SIGKILL');
    await this.#ended;
  }
}
