import type { EmitEvent } from '../../contract/events/index.js';
import { HubHost } from '../hub/hub-host.js';
import { ThreadProgram } from '../../contract/process/thread-program.js';
import type { HubAddress } from '../../contract/snapshot/index.js';

type Host = Pick<HubHost, 'address'>;

/** Starts the hub when the first worker asks for it. */
export class HubDoor {
  #host: Promise<Host> | undefined;
  #refused = false;

  constructor(
    private readonly emit: EmitEvent,
    private readonly open = hubOpener(),
  ) {}

  /** @throws Error if the hub cannot start. Each call tries again; only the first failure warns. */
  async address(): Promise<HubAddress> {
    const warn = (message: string): void => this.emit('warning', { message });
    this.#host ??= this.open(warn);
    let host: Host;
    try {
      host = await this.#host;
    } catch (error) {
      this.#host = undefined;
      const { message } = error as Error;
      if (!this.#refused) warn(`there can be no hub for what workers share: ${message}`);
      this.#refused = true;
      throw error;
    }
    return host.address();
  }
}

/** Reads the program now, because its file may be removed before the first worker asks. */
function hubOpener(): (warn: (message: string) => void) => Promise<Host> {
  const program = new ThreadProgram('hub');
  return (warn) => HubHost.open(program, warn);
}
