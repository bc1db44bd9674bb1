import type { EmitEvent, EventListeners } from '../../contract/events/index.js';
import type { ResolvedClusterOptions } from '../../contract/options/index.js';
import { Control } from '../../control/open-control.js';
import type { AdminListener } from '../../observe/admin/admin-listener.js';
import { isTickLate } from '../../supervisor/decide/policies/heartbeat.policy.js';
import type { Supervisor } from '../../supervisor/supervisor.js';

/** The ways by which others reach the primary itself: admin listener, control socket and systemd. */
export class Doors {
  admin: AdminListener | undefined;
  /** Resolves with `undefined` if the cluster has no control socket. */
  control: Promise<Control | undefined> = Promise.resolve(undefined);
  readonly #warn = (message: string): void => this.emit('warning', { message });

  constructor(
    private readonly options: ResolvedClusterOptions,
    private readonly supervisor: Supervisor,
    private readonly events: EventListeners,
    private readonly emit: EmitEvent,
  ) {}

  /** @throws ClusterAddressError, ClusterConfigurationError */
  async openAdmin(): Promise<void> {
    const { admin } = this.options;
    if (admin === undefined) return;
    // Loaded only here, because most clusters have no admin listener.
    const { AdminListener } = await import('../../observe/admin/admin-listener.js');
    this.admin = await AdminListener.open(admin, this.supervisor, this.#warn);
  }

  /** Never fails, because a cluster also serves without a control socket. */
  openControl(): void {
    const { options, supervisor: cluster } = this;
    // No socket on Windows: named pipes have no owner and no mode, so access could not be restricted.
    if (options.control === undefined || process.platform === 'win32') return;
    this.control = Control.open({ cluster, options }, this.#warn);
  }

  async informSystemd(): Promise<void> {
    if (!process.env['NOTIFY_SOCKET']) return;
    // Loaded only here, because most clusters do not tell systemd their state.
    const { tellSystemd } = await import('../tell-systemd.js');
    const { snapshot, lastBeatAt } = this.supervisor;
    const isWell = () => !isTickLate(lastBeatAt(), performance.now());
    tellSystemd(this.events, { workers: snapshot, isWell, warn: this.#warn });
  }
}
