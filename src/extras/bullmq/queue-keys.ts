/** Keys in Redis beside BullMQ's own: no queue of BullMQ has a name with a colon in it. */
export class QueueKeys {
  constructor(private readonly prefix: string) {}

  /** Stream of the results for one process. */
  repliesTo(process: string): string {
    return `${this.prefix}:nestjs-cluster:replies:${process}`;
  }

  /** Stream of the calls that nobody waits for any more. */
  cancelled(queue: string): string {
    return `${this.prefix}:nestjs-cluster:cancelled:${queue}`;
  }
}
