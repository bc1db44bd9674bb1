import { Module } from '@nestjs/common';
import { PrimesService } from './primes.service.js';
import { SieveService } from './sieve.service.js';

/** Threads build this module too, so it has only the providers that their work needs. */
@Module({ providers: [PrimesService, SieveService], exports: [PrimesService] })
export class PrimesModule {}
