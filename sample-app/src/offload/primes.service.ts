import { Injectable } from '@nestjs/common';
import { CpuBound } from 'nestjs-cluster';
import { SieveService } from './sieve.service.js';

export interface PrimesAnswer {
  readonly n: number;
  readonly primes: number;
}

@Injectable()
export class PrimesService {
  // In a thread it comes from the module that forRoot() names: app.module.ts.
  constructor(private readonly sieve: SieveService) {}

  @CpuBound()
  async count(n: number): Promise<PrimesAnswer> {
    return { n, primes: this.sieve.primesUpTo(n) };
  }
}
