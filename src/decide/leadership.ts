import type { WorkerEventOf } from './input.js';
import type { ClusterState, ReadyWorker, Worker, WorkerId } from './cluster-state.js';
import type { Step } from './step.js';

/**
 * The leader is the worker that has been ready longest, not counting draining workers. It runs the
 * jobs that only one worker at a time may run. To run them, it needs a lease:
 *
 * 1. A lease ends at a time on the machine's monotonic clock, which primary and workers read. The
 *    time is set when the lease is sent, so reading the message late cannot prolong the lease.
 * 2. The leader reads that clock right before it runs a job. Even if it was blocked or stopped, it
 *    starts no job after the lease has ended.
 * 3. The primary renews a lease only after the leader has answered. The primary appoints another
 *    leader when the leader has resigned or exited, or a margin after the lease has ended. The margin
 *    covers a leader that is delayed between reading the clock and running the job.
 *
 * So two workers never begin jobs at the same time. While the primary is stopped, it renews no lease,
 * so no worker starts such a job until the primary continues.
 */
export const LEASE_MS = 900;
export const RENEW_MS = 200;
export const MARGIN_MS = 100;

/** Maximum number of names in `done`; more are ignored. An app has fewer methods with `@Timeout()`. */
const MAX_DONE = 1_000;

/** Which worker runs the jobs that only one worker at a time may run. */
export interface Leadership {
  readonly leader: WorkerId | undefined;
  /** Until this lease ends, no other worker leads. A leader without such jobs has no lease. */
  readonly lease: Lease | undefined;
  readonly leases: number;
  /** Jobs due up to this time belonged to earlier leaders; `undefined` before the first leader. */
  readonly endedAt: number | undefined;
  /** Names of the jobs that have begun and may run only once in the life of the cluster. */
  readonly done: readonly string[];
}

export interface Lease {
  readonly worker: WorkerId;
  readonly seq: number;
  readonly until: number;
  readonly answered: boolean;
}

export const NO_LEADER: Leadership = {
  leader: undefined,
  lease: undefined,
  leases: 0,
  endedAt: undefined,
  done: [],
};

/** Called after each event: grants the leader its first lease, or appoints another leader. */
export function settleLeadership(step: Step): void {
  const { leader, lease } = step.state.leadership;
  const holder = leader === undefined ? undefined : step.worker(leader);
  if (mayLead(holder)) {
    if (holder.follows && lease === undefined) grant(step, holder);
    return;
  }
  if (lease !== undefined) {
    if (holder !== undefined && step.now < lease.until + MARGIN_MS) return;
    endLease(step, Math.min(step.now, lease.until));
  }
  appoint(step);
}

/** Records that a worker has jobs that only the leader runs, so it gets a lease when it leads. */
export function wantsToLead(step: Step, worker: Worker): void {
  step.change(worker, { follows: true });
}

/** The worker acknowledges a lease. Even if late, this shows that it is no longer blocked. */
export function onLeads(step: Step, worker: ReadyWorker, { seq }: WorkerEventOf<'leads'>): void {
  if (worker.lapsed) step.change(worker, { lapsed: false });
  const { lease } = step.state.leadership;
  if (lease?.worker === worker.id && lease.seq === seq)
    set(step, { lease: { ...lease, answered: true } });
}

/** Ends the lease of a worker that has resigned. The worker starts no job that is due after `at`. */
export function onResigned(step: Step, worker: Worker, { at }: WorkerEventOf<'resigned'>): void {
  const { lease } = step.state.leadership;
  if (lease?.worker !== worker.id) return;
  endLease(step, Math.min(at - step.settings.machineClockMs, lease.until));
}

/** Records a job that no worker may run again. */
export function noteBegun(step: Step, _: Worker, { job }: WorkerEventOf<'job-begun'>): void {
  const { done } = step.state.leadership;
  if (done.includes(job) || done.length >= MAX_DONE) return;
  set(step, { done: [...done, job] });
}

/** Renews the lease, or takes it from a worker that does not answer. */
export function onLeaseDue(step: Step): void {
  const { lease } = step.state.leadership;
  if (lease === undefined) return;
  const holder = step.worker(lease.worker);
  if (mayLead(holder) && lease.answered) return grant(step, holder);
  const leftMs = lease.until + MARGIN_MS - step.now;
  if (leftMs > 0) return step.arm({ type: 'lease-due' }, Math.min(leftMs, RENEW_MS));
  endLease(step, lease.until);
  if (holder !== undefined) step.change(holder, { lapsed: true });
}

function mayLead(worker: Worker | undefined): worker is ReadyWorker {
  return worker?.state === 'ready' && !worker.lapsed;
}

function appoint(step: Step): void {
  const next = oldest(step.state);
  if (next?.id === step.state.leadership.leader) return;
  set(step, { leader: next?.id });
  // No event is emitted when a shutdown ends the last leader.
  if (next !== undefined) step.emit('leader', { worker: next.id });
  else if (step.state.shutdown === undefined) step.emit('leader', {});
  if (next?.follows) grant(step, next);
}

function oldest({ workers }: ClusterState): ReadyWorker | undefined {
  let found: ReadyWorker | undefined;
  for (const worker of workers.values()) {
    if (mayLead(worker) && (found === undefined || worker.readyAt < found.readyAt)) found = worker;
  }
  return found;
}

function grant(step: Step, holder: ReadyWorker): void {
  const { leases, endedAt, done } = step.state.leadership;
  const seq = leases + 1;
  const until = step.now + LEASE_MS;
  set(step, { leases: seq, lease: { worker: holder.id, seq, until, answered: false } });
  step.arm({ type: 'lease-due' }, RENEW_MS);
  const clockMs = step.settings.machineClockMs;
  step.send(holder, {
    type: 'lead',
    seq,
    until: until + clockMs,
    since: endedAt === undefined ? undefined : endedAt + clockMs,
    done,
  });
}

function endLease(step: Step, endedAt: number): void {
  set(step, {
    lease: undefined,
    endedAt: Math.max(endedAt, step.state.leadership.endedAt ?? endedAt),
  });
  step.disarm({ type: 'lease-due' });
}

function set(step: Step, changes: Partial<Leadership>): void {
  step.set({ leadership: { ...step.state.leadership, ...changes } });
}
