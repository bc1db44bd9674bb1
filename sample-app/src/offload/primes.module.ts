import { Module } from '@nestjs/common';
import { PrimesService } from './primes.service.js';
import { SieveService } from './sieve.service.js';

/** What threads build too: only what their work needs. */
@Module({ providers: [PrimesService, SieveService], exports: [PrimesService] })
export class PrimesModule {}
