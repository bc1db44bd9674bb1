import { Inject, Injectable } from '@nestjs/common';
import type { ClusterEventName, ClusterEventMap } from '../contract/log/events.js';
import { messageOf } from '../contract/errors/errors.js';
import { checkEventName } from '../contract/options/bootstrap.js';
import {
  CLUSTER_LINK,
  type ClusterLink,
  type ClusterSnapshot,
  type ReloadResult,
  type RestartResult,
  type WorkerIdentity,
} from '../contract/snapshot/types.js';

/** Lets the app inspect and control its cluster. */
@Injectable()
export class ClusterService {
  constructor(@Inject(CLUSTER_LINK) private readonly link: ClusterLink) {}

  /** The identity of this process. While a worker is replaced, two processes have the same slot. */
  get identity(): WorkerIdentity {
    return this.link.identity;
  }

  /**
   * Whether this process is the leader, which does work that only one process may do at a time. The
   * leader is the worker that has been ready longest, not counting draining workers. Check this
   * right before you begin such work, because a worker that is blocked for 0.9 s loses the lead.
   * The first read only asks the primary and returns `false`, so read the property once in a hook
   * such as `onModuleInit()`. Without workers it is always `true`.
   */
  get isLeader(): boolean {
    return this.link.leaderRole.leads;
  }

  /**
   * Resolves with the state of the whole cluster, at most one heartbeat old. If the primary does not
   * answer within 500 ms, resolves with the last known state.
   */
  async snapshot(): Promise<ClusterSnapshot> {
    return (await this.link.snapshot()).snapshot;
  }

  /**
   * Replaces every worker as {@link PrimaryRuntime.reload} does. The calling worker is replaced last
   * and gets the result before it drains, so a request handler may await the result.
   *
   * @throws ClusterNoPrimaryError without a primary: without `bootstrap()`, or with `workers: 0`.
   */
  reload(): Promise<ReloadResult> {
    return this.link.reload();
  }

  /**
   * Sets the number of workers as {@link PrimaryRuntime.scale} does.
   *
   * @param workers 1..256.
   * @throws ClusterConfigurationError for any other number, ClusterNoPrimaryError without primary.
   */
  scale(workers: number): Promise<ClusterSnapshot> {
    return this.link.scale(workers);
  }

  /**
   * Replaces one worker as {@link PrimaryRuntime.restart} does. A worker that restarts its own slot
   * gets the result before it drains, so a request handler may await it.
   *
   * @param slot 0..255.
   * @throws ClusterConfigurationError for any other number, ClusterNoPrimaryError without primary.
   */
  restart(slot: number): Promise<RestartResult> {
    return this.link.restart(slot);
  }

  /**
   * Calls `listener` for each event of that name in the cluster, like `@OnClusterEvent()`.
   *
   * @throws ClusterConfigurationError for an unknown event.
   */
  on<N extends ClusterEventName>(name: N, listener: (event: ClusterEventMap[N]) => void): this {
    this.link.onEvent(checkEventName(name), listener);
    return this;
  }

  off<N extends ClusterEventName>(name: N, listener: (event: ClusterEventMap[N]) => void): this {
    this.link.offEvent(name, listener);
    return this;
  }

  /**
   * Calls `stop` once when this process drains: after the lame duck time, before Nest's shutdown
   * hooks. Use it, for example, to stop taking messages from a broker. The drain waits for the result,
   * and then for the running message handlers, for at most `shutdown.drainTimeoutMs`. An error is
   * logged. Without `bootstrap()` no process drains, and `stop` is not called.
   */
  onDrain(stop: () => unknown): this {
    let left: readonly (typeof stop)[] = [stop];
    const run = async (): Promise<void> => {
      try {
        await stop();
      } catch (error) {
        this.link.warn(`a function passed to onDrain() failed: ${messageOf(error)}`);
      }
      left = [];
    };
    this.link.onDrain(
      () => left,
      () => void run(),
    );
    return this;
  }
}
