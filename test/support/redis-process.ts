import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { freePorts } from './free-ports.js';
import { SYSTEM_ENVIRONMENT } from './system-packages.js';

/** A Redis on 127.0.0.1 that keeps nothing. */
export class RedisProcess {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;

  private constructor(readonly port: number) {
    const args = [
      '--port',
      String(port),
      '--bind',
      '127.0.0.1',
      '--save',
      '',
      '--appendonly',
      'no',
    ];
    this.#child = spawn('redis-server', args, {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: SYSTEM_ENVIRONMENT,
    });
    this.#ended = once(this.#child, 'close');
  }

  static async start(): Promise<RedisProcess> {
    const redis = new RedisProcess(await freePorts(1));
    let output = '';
    await new Promise<void>((resolve, reject) => {
      redis.#child.stdout!.setEncoding('utf8').on('data', (chunk: string) => {
        output += chunk;
        if (output.includes('Ready to accept connections')) resolve();
      });
      redis.#child.once('error', reject);
      redis.#child.once('close', () => reject(new Error(`redis-server ended\n${output}`)));
    });
    return redis;
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }
}
