import { Module } from '@nestjs/common';
import { OffloadController } from './offload.controller.js';
import { PrimesController } from './primes.controller.js';
import { PrimesModule } from './primes.module.js';

@Module({ imports: [PrimesModule], controllers: [OffloadController, PrimesController] })
export class OffloadModule {}
