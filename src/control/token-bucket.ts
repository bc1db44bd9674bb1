/** A rate limit of `perSecond` requests, with up to `size` requests at once after a pause. */
export class TokenBucket {
  #tokens: number;
  #at: number;

  constructor(
    private readonly perSecond: number,
    private readonly size: number,
    private readonly now = () => performance.now(),
  ) {
    this.#tokens = size;
    this.#at = now();
  }

  take(): boolean {
    const now = this.now();
    this.#tokens = Math.min(this.size, this.#tokens + ((now - this.#at) / 1_000) * this.perSecond);
    this.#at = now;
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}
