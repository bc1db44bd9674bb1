import type { WorkerEvent } from '../../src/decide/input.js';
import type { WorkerId } from '../../src/decide/cluster-state.js';
import type { PrimaryMessage } from '../../src/contract/messages.js';
import type { Settings } from '../../src/decide/step.js';
import type { Clock } from './clock.js';
import type { Behaviour, Death } from './scenario.js';

/** The part of the world that a process uses. */
export interface Surface {
  readonly clock: Clock;
  /** Whether all faults have ended. */
  readonly healed: boolean;
  readonly settings: Pick<Settings, 'options'>;
  /** `hasJobs`: the workers ask to lead. */
  readonly scenario: { readonly hasJobs: boolean };
  /** Passes an event of the worker to the primary. */
  tell(worker: WorkerId, event: WorkerEvent): void;
  askForReload(worker: WorkerId): void;
  askToScale(worker: WorkerId): void;
  /** The worker requests its own restart. */
  askToRestart(worker: WorkerId): void;
  /** Called when a process survives SIGKILL. */
  froze(): void;
  /** Called when the process of the worker has exited. */
  buried(worker: WorkerId): void;
}

/** How long a signal, an exit or a message of the watchdog takes to arrive. */
const TRAVEL_MS = 1;

const USUAL_BYTES = 100e6;
/** Above the soft memory limit of `settingsOf()`. */
const LARGE_BYTES = 600e6;
/** Above the hard memory limit. */
const HUGE_BYTES = 1e9;

/** More than `maxRequests`, even with the largest jitter. */
const MANY_REQUESTS = 5_000;

/** A process of the simulated machine. It follows its behaviour. */
export class SimulatedProcess {
  state: 'booting' | 'ready' | 'draining' | 'exited' = 'booting';
  residentBytes: number;
  requests = 0;
  /** Whether the process has survived SIGKILL. */
  isFrozen = false;
  /** Since when the process answers no pings, in ms. */
  silentSince: number | undefined;
  /** When the event loop was last no longer blocked, in ms. */
  resumedAt = -Infinity;
  /** Whether the event loop is blocked, so that no message is read and no handler runs. */
  #hung = false;
  /** The messages that arrived while the event loop was blocked. */
  #unread: (() => void)[] = [];
  /** Whether the primary has asked for a check of the threads and has no answer. */
  #owesVerdict = false;
  #told = false;
  #lastPong: number | undefined;
  /** The end of the lease, in ms of the machine's clock. */
  #leadsUntil = -Infinity;
  #resigned = false;
  /** When the last message to the primary arrives, in ms. A later message may not overtake it. */
  #lastWordAt = 0;
  /** When the last message from the primary arrives, in ms. A later message may not overtake it. */
  #lastHeardAt = 0;

  constructor(
    readonly id: WorkerId,
    readonly behaviour: Behaviour,
    private readonly around: Surface,
  ) {
    this.residentBytes = behaviour.large ? LARGE_BYTES : USUAL_BYTES;
  }

  start(): void {
    const { boot } = this.behaviour;
    switch (boot.kind) {
      case 'none':
        this.#say({ type: 'channel-error', error: EMFILE });
        return this.#exit(null, null);
      case 'ready':
        return this.#in(boot.ms, () => this.#becomeReady());
      case 'dies':
        return this.#in(boot.ms, () => this.#die(boot.how));
      case 'reports':
        return this.#in(boot.ms, () => {
          const error = { name: 'Error', message: 'no boot', code: boot.code };
          this.#say({ type: 'boot-failed', listening: true, error });
          this.#in(5, () => this.#die('exit-1'));
        });
      case 'foreign':
        return this.#in(boot.ms, () => this.#say({ type: 'foreign-version', version: 9 }));
      case 'stuck':
        this.#hung = true;
    }
  }

  /** Whether the worker would run a job that is due now. A blocked worker counts too. */
  get leads(): boolean {
    return !this.#resigned && this.around.clock.now < this.#leadsUntil;
  }

  /** Ends a ready worker by something outside of it, e.g. a lost database. */
  crash(): void {
    if (this.state === 'ready') this.#die('exit-1');
  }

  /**
   * Delivers a message of the primary.
   *
   * @param read is called once the process reads the message.
   */
  receive(message: PrimaryMessage, read?: () => void): void {
    const { clock } = this.around;
    this.#lastHeardAt = Math.max(clock.now + this.behaviour.lagMs, this.#lastHeardAt);
    this.#at(this.#lastHeardAt, () => {
      const obey = (): void => {
        read?.();
        this.#obey(message);
      };
      if (this.#hung) this.#unread.push(obey);
      else obey();
    });
  }

  signal(signal: NodeJS.Signals): void {
    this.#in(TRAVEL_MS, () => {
      if (signal === 'SIGKILL' && this.behaviour.unkillable) return this.#freeze();
      if (signal === 'SIGKILL') return this.#exit(null, signal);
      // Only a booting worker ends by another signal. If it is deaf, it handles the signal when its
      // event loop is free, and then it already serves.
      if (this.state === 'booting' && !this.behaviour.deaf) this.#exit(null, signal);
    });
  }

  /**
   * Ends waits that could last for ever. A blocked worker that is debugged has no time limits, so
   * it exits, as if its developer had ended it. A missing answer about its threads is sent.
   */
  heal(inspected: boolean): void {
    if (inspected && this.state === 'booting') return this.#die('exit-1');
    if ((inspected || this.behaviour.debugged) && this.#hung) return this.#die('exit-1');
    if (this.#owesVerdict) this.#say({ type: 'verified', error: null });
  }

  #becomeReady(): void {
    const { threads, fate, debugged, pong } = this.behaviour;
    this.state = 'ready';
    if (pong === 'never') this.silentSince = this.around.clock.now;
    const verifiable = threads !== 'none';
    const { hasJobs } = this.around.scenario;
    const asksLate = this.id % 2 === 0;
    if (hasJobs && !asksLate) this.#say({ type: 'lead-request' });
    this.#say({ type: 'ready', residentBytes: this.residentBytes, verifiable });
    if (hasJobs && asksLate) this.#in(50, () => this.#say({ type: 'lead-request' }));
    if (debugged) this.#say({ type: 'pong', seq: 0, stats: {}, debugged });
    if (fate.kind !== 'lives') this.#in(fate.afterMs, () => this.#meetFate());
  }

  /** The worker may already be draining when its fate comes. */
  #meetFate(): void {
    const { around } = this;
    if (around.healed) return;
    switch (this.behaviour.fate.kind) {
      case 'lives':
        return;
      case 'dies':
        return this.#die('exit-1');
      case 'killed':
        return this.#die('SIGKILL');
      case 'hangs':
        return this.#hang();
      case 'blocks':
        return this.#block(3_000);
      case 'blocks-long':
        return this.#block(9_000);
      case 'fatal':
        this.#say({ type: 'fatal', error: TYPE_ERROR, requests: [] });
        return this.#drain();
      case 'leaves':
        return this.#say({ type: 'leaving' });
      case 'closes':
        return this.#say({ type: 'leaving', closed: true });
      case 'grows':
        this.residentBytes = LARGE_BYTES;
        return;
      case 'grows-far':
        this.residentBytes = HUGE_BYTES;
        this.requests = MANY_REQUESTS;
        return;
      case 'serves-enough':
        this.requests = MANY_REQUESTS;
        return;
      case 'breaks-channel':
        return this.#say({ type: 'channel-broken', error: TYPE_ERROR });
      case 'asks-for-reload':
        return this.#arrive(() => around.askForReload(this.id));
      case 'asks-to-scale':
        return this.#arrive(() => around.askToScale(this.id));
      case 'asks-to-restart':
        return this.#arrive(() => around.askToRestart(this.id));
    }
  }

  /** The process survives SIGKILL, but does nothing from now on. */
  #freeze(): void {
    this.#hang();
    this.isFrozen = true;
    this.around.froze();
  }

  #hang(): void {
    this.#hung = true;
    this.silentSince ??= this.around.clock.now;
  }

  /** Blocks the event loop. The watchdog reports the block, which ends `afterToldMs` later. */
  #block(afterToldMs: number): void {
    this.#hang();
    const since = this.around.clock.now;
    // The watchdog reports a block that lasts for half of the heartbeat timeout.
    this.#in(this.around.settings.options.hangTimeoutMs / 2, () => {
      this.#watchdog({
        type: 'blocked',
        forMs: this.around.clock.now - since,
        requests: [],
        frames: [],
      });
      this.#in(afterToldMs, () => {
        this.#hung = false;
        this.resumedAt = this.around.clock.now;
        this.silentSince = this.behaviour.pong === 'never' ? this.around.clock.now : undefined;
        this.#watchdog({ type: 'resumed' });
        for (const obey of this.#unread.splice(0)) obey();
      });
    });
  }

  #obey(message: PrimaryMessage): void {
    const { type } = message;
    if (type === 'ping') this.#pong(message.seq);
    else if (type === 'lead') this.#lead(message);
    else if (type === 'check') this.#check();
    else if (type === 'verify') this.#verify();
    else if (type === 'drain') this.#drain();
    else if (type === 'force' && this.state === 'draining') this.#in(1, () => this.#die('exit-0'));
  }

  #pong(seq: number): void {
    const { pong } = this.behaviour;
    if (pong === 'never') return;
    if (pong === 'twice' && this.#lastPong !== undefined) {
      this.#say({ type: 'pong', seq: this.#lastPong, stats: {} });
    }
    this.#lastPong = seq;
    this.#in(pong === 'late' ? 3_000 : 0, () => this.#say({ type: 'pong', seq, stats: {} }));
  }

  #lead({ seq, until }: PrimaryMessage & { type: 'lead' }): void {
    if (this.#resigned) return;
    this.#leadsUntil = until;
    const { pong } = this.behaviour;
    if (pong === 'never') return;
    this.#in(pong === 'late' ? 3_000 : 0, () => this.#say({ type: 'leads', seq }));
    if (pong === 'twice') this.#say({ type: 'leads', seq });
  }

  #resign(): void {
    const { clock } = this.around;
    if (this.leads) this.#say({ type: 'resigned', at: clock.now });
    this.#resigned = true;
  }

  #check(): void {
    const { check } = this.behaviour;
    if (check === 'silent') return;
    const verdict = { type: 'checked', healthy: check !== 'ill', detail: null } as const;
    this.#say(verdict);
    if (check === 'twice') this.#say(verdict);
  }

  #verify(): void {
    const { threads } = this.behaviour;
    if (threads === 'silent' && !this.around.healed) {
      this.#owesVerdict = true;
      return;
    }
    const error = threads === 'unfit' ? { name: 'Error', message: 'no thread' } : null;
    this.#in(200, () => this.#say({ type: 'verified', error }));
  }

  #drain(): void {
    if (this.state === 'draining') return;
    this.state = 'draining';
    this.#resign();
    const { kind, ms } = this.behaviour.drain;
    if (kind === 'hangs') return;
    this.#in(ms, () => {
      if (this.#hung) return;
      if (!this.#told)
        this.#say({ type: 'drained', report: { ...CLEAN, abortedRequests: this.id % 3 } });
      this.#told = true;
      this.#in(1, () => this.#die(kind === 'ends' ? 'exit-0' : 'exit-1'));
    });
  }

  #die(how: Death): void {
    if (how === 'exit-0' || how === 'exit-1') this.#exit(how === 'exit-0' ? 0 : 1, null);
    else this.#exit(null, how);
  }

  #exit(code: number | null, signal: NodeJS.Signals | null): void {
    if (this.state === 'exited' || this.isFrozen) return;
    this.state = 'exited';
    this.silentSince = undefined;
    const { clock } = this.around;
    // The primary reads everything that the process has sent before it learns of the exit.
    clock.at(Math.max(clock.now + TRAVEL_MS, this.#lastWordAt), () => {
      this.around.buried(this.id);
      this.around.tell(this.id, { type: 'exited', exit: { code, signal }, oomKill: false, at: '' });
    });
  }

  #say(event: WorkerEvent): void {
    if (this.isFrozen) return;
    this.#arrive(() => this.around.tell(this.id, event));
  }

  #arrive(run: () => void): void {
    if (this.state === 'exited') return;
    const { clock } = this.around;
    this.#lastWordAt = Math.max(clock.now + this.behaviour.lagMs, this.#lastWordAt);
    clock.at(this.#lastWordAt, run);
  }

  /** Sends by the watchdog's own pipe, unless the process has exited before the message arrives. */
  #watchdog(event: WorkerEvent): void {
    this.#in(TRAVEL_MS, () => this.around.tell(this.id, event));
  }

  #in(ms: number, run: () => void): void {
    this.#at(this.around.clock.now + ms, run);
  }

  /** Runs something at that time, unless the process has exited by then. */
  #at(at: number, run: () => void): void {
    this.around.clock.at(at, () => {
      if (this.state !== 'exited') run();
    });
  }
}

const EMFILE = { name: 'Error', message: 'spawn EMFILE', code: 'EMFILE' };

const TYPE_ERROR = { name: 'TypeError', message: 'x is not a function' };

const CLEAN = { destroyedConnections: 0, destroyedWebSockets: 0, hookError: null };
