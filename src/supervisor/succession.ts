import type { WorkerMessage } from '../contract/ipc/index.js';
import { machineClockMs } from '../contract/ipc/machine-clock.js';
import { formatIdentity } from '../contract/snapshot/index.js';
import type { ClusterEvent, WorkerEvent } from './decide/cluster-event.js';
import type { WorkerId } from './decide/cluster-state.js';
import { type Bequest, bequeath } from './decide/leadership.js';
import { CHECK_TIMEOUT_MS } from './decide/replace/replacement.js';
import type { Listening } from './listening/listening.interface.js';
import type { WorkerTable } from './processes/worker-table.js';

type Checked = WorkerMessage & { readonly type: 'checked' };

/** The supervisor's part in an upgrade, in which a new primary takes over from an old one. */
export class Succession {
  readonly #checks = new Map<WorkerId, (checked: Checked) => void>();

  constructor(
    private readonly table: Pick<WorkerTable, 'state' | 'find' | 'workers'>,
    private readonly listening: Pick<Listening, 'sockets'>,
    private readonly post: (event: ClusterEvent) => void,
  ) {}

  /** Notes whether the other primary has the sockets too. Until then, nobody empties their queues. */
  share(isShared: boolean): void {
    const { sockets } = this.listening;
    for (const socket of sockets) socket.isShared = isShared;
    const kept = sockets.some(({ isKept }) => isKept);
    for (const worker of this.table.workers) worker.send({ type: 'queue', kept });
  }

  /** The facts about the leaders of this primary that the next one needs. */
  get bequest(): Bequest {
    return bequeath(this.table.state, machineClockMs());
  }

  /** The old primary has left, so workers of this one may lead. */
  inherit({ since, done }: Bequest): void {
    this.post({ type: 'inherit', since, done });
  }

  /** Checks the health of the app in each ready worker. @returns the problem of one; `undefined` if all are well. */
  async check(): Promise<string | undefined> {
    const ready = [...this.table.state.workers.values()].filter(({ state }) => state === 'ready');
    const problems = await Promise.all(ready.map(({ id }) => this.#checkOne(id)));
    return problems.find((problem) => problem !== undefined);
  }

  /** Hears the answers of workers to their checks. */
  hear(worker: WorkerId, event: WorkerEvent): void {
    if (event.type === 'checked') this.#checks.get(worker)?.(event);
  }

  async #checkOne(id: WorkerId): Promise<string | undefined> {
    const worker = this.table.find(id)!;
    const answer = await new Promise<Checked | undefined>((resolve) => {
      this.#checks.set(id, resolve);
      setTimeout(resolve, CHECK_TIMEOUT_MS, undefined).unref();
      worker.send({ type: 'check', id });
    });
    this.#checks.delete(id);
    if (answer?.healthy === true) return undefined;
    const late = `took longer than ${CHECK_TIMEOUT_MS} ms`;
    const why = answer === undefined ? late : `failed: ${answer.detail ?? 'no reason given'}`;
    return `${formatIdentity(worker.identity)}: its health check ${why}`;
  }
}
