import cluster, { type Worker } from 'node:cluster';
import { EventEmitter, once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type ExaminationMessage,
  LEAVE_SIGNAL,
  parseExamination,
  parseWorkerMessage,
  type PrimaryMessage,
  seal,
} from '../../contract/ipc/index.js';
import {
  type ExaminationAssignment,
  WORKER_VARIABLE,
  type WorkerAssignment,
} from '../../contract/ipc/assignment.js';

/** The outcome of the app's start. */
export type Outcome =
  | {
      readonly type: 'examined';
      readonly report: ExaminationMessage;
      readonly warnings: readonly string[];
    }
  | {
      readonly type: 'failed';
      /** The rest of a sentence that begins with "the app". */
      readonly why: string;
    };

/** The task of {@link ExaminedWorker}. */
export interface WorkerTask {
  readonly script: string;
  readonly examination: ExaminationAssignment;
}

/** How long the app may take to start. Some apps wait for ever for a database. */
const READY_MS = 60_000;

/** How long a program that listens somewhere may take until it calls `bootstrap()`. */
const BOOTSTRAP_MS = 3_000;

/** How long an app that has failed may take to print its error and end by itself. */
const LAST_WORDS_MS = 1_000;

/** How long shutdown hooks may take, in ms. The default of a cluster is shorter. */
const CLOSE_MS = 5_000;

/**
 * The only worker that the command `doctor` starts. This process acts as its primary and lets it
 * listen on a free port of the loopback address. So the app's address, admin listener and number of
 * workers have no effect.
 */
export class ExaminedWorker {
  readonly #worker: Worker;
  readonly #outcome = new EventEmitter<{ outcome: [Outcome] }>();
  readonly #warnings: string[] = [];
  /** Whether the app has called `bootstrap()`. */
  #isOurs = false;
  #failed = false;

  constructor({ script, examination }: WorkerTask) {
    const assignment: WorkerAssignment = {
      slot: 0,
      generation: 0,
      workers: 1,
      primaryPid: process.pid,
      reportTo: undefined,
      ownArguments: 0,
      printsBootError: true,
      examination,
    };
    cluster.setupPrimary({
      exec: script,
      args: [],
      serialization: 'json',
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.#worker = cluster.fork({ [WORKER_VARIABLE]: JSON.stringify(assignment) });
    this.#worker.on('error', (error) => this.#fail(`cannot be asked: ${error.message}`));
    this.#worker.on('message', (message) => this.#onMessage(message));
    this.#worker.once('listening', () => setTimeout(() => this.#expectBootstrap(), BOOTSTRAP_MS));
    this.#worker.process.once('exit', (code, signal) => {
      this.#fail(
        `ended before it was ready (${signal === null ? `exit code ${code}` : `killed by ${signal}`})`,
      );
    });
  }

  /** Resolves once the app has been examined or has failed. */
  async outcome(): Promise<Outcome> {
    const timer = setTimeout(() => {
      const missing = this.#isOurs
        ? 'was not ready'
        : 'has not called bootstrap() of nestjs-cluster';
      this.#fail(`${missing} within ${READY_MS / 1_000} s`);
    }, READY_MS);
    const [outcome] = await once(this.#outcome, 'outcome');
    clearTimeout(timer);
    return outcome as Outcome;
  }

  /** Closes the app, so that its shutdown hooks run, and ends the process. */
  async end(): Promise<void> {
    const { process: child } = this.#worker;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit').then(() => true);
    const endsWithin = (ms: number) => Promise.race([ended, delay(ms, false)]);
    // A worker whose app has failed prints its error and ends by itself.
    if (this.#failed && (await endsWithin(LAST_WORDS_MS))) return;
    if (this.#isOurs) {
      this.#send({ type: 'drain', cause: 'scale', signal: LEAVE_SIGNAL });
      this.#send({ type: 'force' }); // skips the lame duck, because nobody is served
    } else {
      child.kill();
    }
    if (await endsWithin(CLOSE_MS)) return;
    child.kill('SIGKILL');
    await ended;
  }

  #onMessage(raw: unknown): void {
    const report = parseExamination(raw);
    if (report !== undefined) {
      this.#outcome.emit('outcome', { type: 'examined', report, warnings: this.#warnings });
      return;
    }
    const message = parseWorkerMessage(raw);
    if (message === undefined) return;
    this.#isOurs = true;
    if (message.type === 'listen-request') {
      this.#send({ type: 'listen', target: { kind: 'tcp', port: 0, host: '127.0.0.1' } });
    } else if (message.type === 'warning') {
      this.#warnings.push(message.message);
    } else if (message.type === 'boot-failed' || message.type === 'fatal') {
      this.#fail(`does not start: ${message.error.message}`);
    }
  }

  #expectBootstrap(): void {
    if (this.#isOurs) return;
    this.#fail('listens and has not called bootstrap() of nestjs-cluster');
  }

  #fail(why: string): void {
    this.#failed = true;
    this.#outcome.emit('outcome', { type: 'failed', why });
  }

  #send(message: PrimaryMessage): void {
    if (this.#worker.isConnected()) this.#worker.send(seal(message), () => {});
  }
}
