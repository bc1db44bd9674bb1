import { closeSync } from 'node:fs';
import { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { EventListeners } from '../../contract/events/index.js';
import { isAlive } from '../../contract/files/stale-sockets.js';
import type { ResolvedAdminOptions, ResolvedClusterOptions } from '../../contract/options/index.js';
import type { HubAddress } from '../../contract/snapshot/index.js';
import { type Bequest, LEASE_MS, MARGIN_MS } from '../../supervisor/decide/leadership.js';
import { parseLine, readLines } from '../../supervisor/processes/read-lines.js';
import type { Succession } from '../../supervisor/succession.js';
import type { Supervisor } from '../../supervisor/supervisor.js';
import type { Doors } from '../roles/doors.js';
import {
  type Handover,
  HANDOVER_VARIABLE,
  HANDOVER_VERSION,
  PIPE_DESCRIPTOR,
  sendLine,
  type ToNewPrimary,
} from './handover.js';
import { passCanary } from './canary.js';
import type { Upgrades } from './upgrades.js';

/** The parts of this primary that take over. */
interface Parts {
  readonly options: ResolvedClusterOptions;
  readonly supervisor: Supervisor;
  readonly doors: Doors;
  readonly upgrades: Upgrades;
  readonly events: EventListeners;
}

/** Variables of systemd with the pid of the process that they are meant for. */
const MEANT_FOR = ['SYSTEMD_EXEC_PID', 'WATCHDOG_PID'];

/**
 * Reads what an old primary has passed to this process. Removes the variable, because no child of
 * this process is meant, and lets the variables of systemd mean this process.
 *
 * @returns `undefined` if no primary of this version has started this process to take over.
 */
export function takeHandover(env: NodeJS.ProcessEnv = process.env): Handover | undefined {
  const text = env[HANDOVER_VARIABLE];
  delete env[HANDOVER_VARIABLE];
  if (text === undefined) return undefined;
  const handover = parseLine<Handover>(text);
  if (handover?.v !== HANDOVER_VERSION) return undefined; // or a user has set the variable
  // If the old primary was killed, this process has its sockets nevertheless.
  if (handover.pid !== process.ppid && isAlive(handover.pid)) return undefined;
  for (const name of MEANT_FOR) {
    if (env[name] === String(handover.firstPid)) env[name] = String(process.pid);
  }
  return handover;
}

/** The old primary, as the new one sees it: over a pipe that closes when the old primary is gone. */
export class Predecessor {
  readonly #pipe = new Socket({ fd: PIPE_DESCRIPTOR, readable: true, writable: true });
  #hub: ((address: HubAddress | Error | undefined) => void)[] = [];
  #bequest: Bequest | undefined;
  #resolveOver!: () => void;
  /** Resolves when the old primary has handed over, or is gone. */
  readonly #over = new Promise<void>((resolve) => (this.#resolveOver = resolve));
  #resolveGone!: () => void;
  readonly #gone = new Promise<void>((resolve) => (this.#resolveGone = resolve));
  isGone = false;

  /** @returns `undefined` if no primary has started this process to take over. */
  static find(): Predecessor | undefined {
    const handover = takeHandover();
    return handover && new Predecessor(handover);
  }

  private constructor(readonly handover: Handover) {
    const hear = (message: ToNewPrimary): void => {
      if (message.type === 'take-over') this.#resolveOver();
      else if (message.type === 'left') this.#bequest = message;
      else this.#hub.shift()?.(message.type === 'hub' ? message : new Error(message.reason));
    };
    readLines(this.#pipe, hear, Infinity); // a bequest may name many jobs
    this.#pipe.once('close', () => {
      this.isGone = true;
      for (const answer of this.#hub.splice(0)) answer(undefined);
      this.#resolveOver();
      this.#resolveGone();
    });
  }

  /** The options with as many workers as the old primary has now, if its options were the same. */
  adapt(options: ResolvedClusterOptions): ResolvedClusterOptions {
    const { configured, desired } = this.handover.workers;
    const most = options.elastic?.max ?? desired;
    return options.workers === configured
      ? { ...options, workers: Math.min(desired, most) }
      : options;
  }

  /**
   * The old primary's hub, so that a lock has one holder while both primaries have workers.
   *
   * @returns `undefined` once the old primary is gone.
   * @throws Error if its hub cannot start.
   */
  readonly findHub = async (): Promise<HubAddress | undefined> => {
    if (this.isGone) return undefined;
    const answer = await new Promise<HubAddress | Error | undefined>((resolve) => {
      this.#hub.push(resolve);
      void sendLine(this.#pipe, { type: 'hub-request' });
    });
    if (answer instanceof Error) throw answer;
    return answer && { path: answer.path, token: answer.token };
  };

  /**
   * Takes over once the workers have passed the canary. If they fail, tells the old primary why,
   * drains them and never resolves, because this process ends then.
   */
  async takeOver({ options, supervisor, doors, upgrades, events }: Parts): Promise<void> {
    try {
      await passCanary(supervisor, events, options);
      await doors.openAdmin(this.#adminSocket(options.admin));
    } catch (error) {
      const { message } = error as Error;
      await sendLine(this.#pipe, { type: 'failed', reason: message });
      supervisor.stop(`upgrade failed: ${message}`);
      return new Promise(() => {});
    }
    void sendLine(this.#pipe, { type: 'serving' });
    await this.#over;
    doors.openControl(upgrades);
    await doors.informSystemd();
    void this.#succeed(supervisor.succession);
  }

  /** Once the old primary is gone, the sockets belong to this one, and its workers may lead. */
  async #succeed(succession: Succession): Promise<void> {
    await this.#gone;
    succession.share(false);
    // A primary that was killed leaves no word, but the lease of its leader ends.
    if (this.#bequest === undefined) await delay(LEASE_MS + MARGIN_MS);
    succession.inherit(this.#bequest ?? { done: [] });
  }

  /** The old primary's socket for the admin listener; `undefined` if the options name another address. */
  #adminSocket(admin: ResolvedAdminOptions | undefined): number | undefined {
    const passed = this.handover.admin;
    if (passed === undefined) return undefined;
    if (admin?.host === passed.host && admin.port === passed.port) return passed.fd;
    closeSync(passed.fd); // otherwise clients would wait on a socket from which nobody accepts
    return undefined;
  }
}
