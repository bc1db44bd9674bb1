import { Inject, Injectable } from '@nestjs/common';
import {
  CLUSTER_LINK,
  type ClusterLink,
  type ClusterSnapshot,
  type WorkerIdentity,
} from './snapshot/index.js';

/** What an app may know of the cluster it runs in. */
@Injectable()
export class ClusterService {
  constructor(@Inject(CLUSTER_LINK) private readonly link: ClusterLink) {}

  /**
   * Which worker this process is. Slot 0 is one process of the cluster at any
   * time, but while it is replaced there may be two.
   */
  get identity(): WorkerIdentity {
    return this.link.identity;
  }

  /**
   * The whole cluster, fresh within one heartbeat. Answers within 500 ms: the
   * last known state where the primary does not.
   */
  async snapshot(): Promise<ClusterSnapshot> {
    return (await this.link.snapshot()).snapshot;
  }
}
