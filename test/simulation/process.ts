import type { WorkerEvent } from '../../src/supervisor/decide/cluster-event.js';
import type { WorkerId } from '../../src/supervisor/decide/cluster-state.js';
import type { PrimaryMessage } from '../../src/contract/ipc/index.js';
import type { Settings } from '../../src/supervisor/decide/step.js';
import type { Clock } from './clock.js';
import type { Behaviour, Death } from './scenario.js';

/** What a process has of the world around it. */
export interface Surface {
  readonly clock: Clock;
  /** No fault happens any more. */
  readonly healed: boolean;
  readonly settings: Pick<Settings, 'options'>;
  /** Workers want to lead. */
  readonly scenario: { readonly hasJobs: boolean };
  /** What the primary reads. */
  tell(worker: WorkerId, event: WorkerEvent): void;
  askForReload(worker: WorkerId): void;
  askToScale(worker: WorkerId): void;
  /** For its own restart. */
  askToRestart(worker: WorkerId): void;
  /** A process has not ended by SIGKILL. */
  froze(): void;
  /** Nothing of it is left. */
  buried(worker: WorkerId): void;
}

/** What a signal, an exit or a word of the watchdog takes. */
const TRAVEL_MS = 1;

const USUAL_BYTES = 100e6;
/** Above the soft limit, and above the hard one. */
const LARGE_BYTES = 600e6;
const HUGE_BYTES = 1e9;

/** More than any jitter makes of `maxRequests`. */
const MANY_REQUESTS = 5_000;

/** A process of the simulated machine: it does what its behaviour says. */
export class SimulatedProcess {
  state: 'booting' | 'ready' | 'draining' | 'exited' = 'booting';
  residentBytes: number;
  requests = 0;
  /** SIGKILL did not end it. */
  isFrozen = false;
  /** Since when it answers no pings. */
  silentSince: number | undefined;
  /** Reads no message and runs no handler. */
  #hung = false;
  /** What it has been sent while it was hung. */
  #unread: (() => void)[] = [];
  /** It was asked whether its threads are fit, and has not answered. */
  #owesVerdict = false;
  #told = false;
  #lastPong: number | undefined;
  /** Its lease, by the clock of the machine. */
  #leadsUntil = -Infinity;
  #resigned = false;
  /** A channel keeps the order in which it was written to. */
  #lastWordAt = 0;
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
          this.#say({ type: 'boot-failed', phase: 'listen', error });
          this.#in(5, () => this.#die('exit-1'));
        });
      case 'foreign':
        return this.#in(boot.ms, () => this.#say({ type: 'foreign-version', version: 9 }));
      case 'stuck':
        this.#hung = true;
    }
  }

  /** Whether it would run what is due now, blocked or not. */
  get leads(): boolean {
    return !this.#resigned && this.around.clock.now < this.#leadsUntil;
  }

  /** The app ends by something that is no fault of this worker. */
  crash(): void {
    if (this.state === 'ready') this.#die('exit-1');
  }

  /** The primary has sent it something. @param read is called once it reads that. */
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
      // Its handler would run once its event loop is free: then it serves already.
      if (this.state === 'booting' && !this.behaviour.deaf) this.#exit(null, signal);
    });
  }

  /** Where time means nothing whoever debugs it ends it, and what its threads owe comes about. */
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
    if (debugged) this.#say({ type: 'pong', stats: {}, debugged });
    if (fate.kind !== 'lives') this.#in(fate.afterMs, () => this.#meetFate());
  }

  /** It may drain by then. */
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
        this.#say({ type: 'fatal', error: TYPE_ERROR, abort: false });
        return this.#drain();
      case 'aborts':
        this.#say({ type: 'fatal', error: TYPE_ERROR, abort: true });
        return this.#in(5, () => this.#die('exit-1'));
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
      case 'wants-to-go':
        return this.#say({ type: 'replace-request', reason: 'a thread is stuck' });
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

  /** Nothing that it had begun comes about. */
  #freeze(): void {
    this.#hang();
    this.isFrozen = true;
    this.around.froze();
  }

  #hang(): void {
    this.#hung = true;
    this.silentSince ??= this.around.clock.now;
  }

  /** It is blocked, which its watchdog tells, and goes on after a time. */
  #block(afterToldMs: number): void {
    this.#hang();
    const since = this.around.clock.now;
    // A watchdog speaks when a block is half as long as it may be.
    this.#in(this.around.settings.options.heartbeat.timeoutMs / 2, () => {
      this.#watchdog({
        type: 'blocked',
        forMs: this.around.clock.now - since,
        requests: [],
        frames: [],
      });
      this.#in(afterToldMs, () => {
        this.#hung = false;
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
    else if (type === 'check') this.#check(message.id);
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

  #check(id: number): void {
    const { check } = this.behaviour;
    if (check === 'silent') return;
    const verdict = { type: 'checked', id, healthy: check !== 'ill', detail: null } as const;
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
        this.#say({
          type: 'drained',
          report: { ...CLEAN, abortedRequests: this.id % 3, durationMs: ms },
        });
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
    // What it has said is read before.
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

  /** By a pipe of its own, and only while the process is there. */
  #watchdog(event: WorkerEvent): void {
    this.#in(TRAVEL_MS, () => this.around.tell(this.id, event));
  }

  #in(ms: number, run: () => void): void {
    this.#at(this.around.clock.now + ms, run);
  }

  /** As long as the process is there. */
  #at(at: number, run: () => void): void {
    this.around.clock.at(at, () => {
      if (this.state !== 'exited') run();
    });
  }
}

const EMFILE = { name: 'Error', message: 'spawn EMFILE', code: 'EMFILE' };

const TYPE_ERROR = { name: 'TypeError', message: 'x is not a function' };

const CLEAN = {
  unacceptedConnections: 0,
  destroyedConnections: 0,
  destroyedWebSockets: 0,
  hookError: null,
};
