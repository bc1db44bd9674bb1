import { Inject, Injectable } from '@nestjs/common';
import type { ClusterEventName, ClusterEventMap } from '../contract/events/index.js';
import { checkEventName } from '../contract/options/index.js';
import {
  CLUSTER_LINK,
  type ClusterPort,
  type ClusterSnapshot,
  type ReloadResult,
  type RestartResult,
  type SharedStatePort,
  type WorkerIdentity,
} from '../contract/snapshot/index.js';

/** An app's view of the cluster that it runs in. */
@Injectable()
export class ClusterService {
  constructor(@Inject(CLUSTER_LINK) private readonly link: ClusterPort & SharedStatePort) {}

  /**
   * Which worker this process is. Slot 0 is one process of the cluster at any
   * time, but while it is replaced there may be two.
   */
  get identity(): WorkerIdentity {
    return this.link.identity;
  }

  /**
   * Whether this process is the one that runs what one alone is to run: the leader is the worker
   * that has been ready longest and does not drain. Ask right before you begin something: a worker
   * that is blocked for 0.9 s leads no more. The first question asks the primary, and is answered
   * with `false`: ask once in a hook such as `onModuleInit()`. Without workers it is always true.
   */
  get isLeader(): boolean {
    return this.link.leaderRole.leads;
  }

  /**
   * The whole cluster, fresh within one heartbeat. Answers within 500 ms: the
   * last known state where the primary does not.
   */
  async snapshot(): Promise<ClusterSnapshot> {
    return (await this.link.snapshot()).snapshot;
  }

  /**
   * Replaces every worker as {@link PrimaryRuntime.reload} does. The worker that asks is replaced
   * last, and has its answer before it drains: a request handler may wait for it.
   *
   * @throws ClusterNoPrimaryError where there is none: without `bootstrap()`, or with `workers: 0`.
   */
  reload(): Promise<ReloadResult> {
    return this.link.reload();
  }

  /**
   * Changes the number of workers as {@link PrimaryRuntime.scale} does.
   *
   * @param workers 1..256.
   * @throws ClusterConfigurationError for another number, ClusterNoPrimaryError without a primary.
   */
  scale(workers: number): Promise<ClusterSnapshot> {
    return this.link.scale(workers);
  }

  /**
   * Replaces one worker as {@link PrimaryRuntime.restart} does. A worker that asks for its own
   * restart has its answer before it drains: a request handler may wait for it.
   *
   * @param slot 0..255.
   * @throws ClusterConfigurationError for another number, ClusterNoPrimaryError without a primary.
   */
  restart(slot: number): Promise<RestartResult> {
    return this.link.restart(slot);
  }

  /**
   * Calls `listener` on each event of that name in the cluster, as a method with
   * `@OnClusterEvent()`.
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
}
