import { Injectable } from '@nestjs/common';

@Injectable()
export class SieveService {
  /** How many primes there are up to `n`: the sieve of Eratosthenes. */
  primesUpTo(n: number): number {
    const composite = new Uint8Array(n + 1);
    let count = 0;
    for (let i = 2; i <= n; i += 1) {
      if (composite[i]) continue;
      count += 1;
      for (let multiple = i * i; multiple <= n; multiple += i) composite[multiple] = 1;
    }
    return count;
  }
}
