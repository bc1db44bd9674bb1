import { rmdirSync } from 'node:fs';
import { eventually } from './eventually.js';

/** A control group that a test has made. */
export class ControlGroup {
  protected constructor(private readonly path: string) {}

  /** The command that runs another one in this group. */
  get within(): string[] {
    return ['sh', '-c', 'echo $$ > "$0" && exec "$@"', `${this.path}/cgroup.procs`];
  }

  /** Removes it; its last process may only just have ended. */
  async remove(): Promise<void> {
    await eventually(`${this.path} is removed`, () => {
      try {
        rmdirSync(this.path);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EBUSY') return false;
        throw error;
      }
      return true;
    });
  }
}
