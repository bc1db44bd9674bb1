import { Controller, Get, Param } from '@nestjs/common';
import { IntegerInRangePipe } from '../pipes/integer-in-range.pipe.js';
import { type PrimesAnswer, PrimesService } from './primes.service.js';

const LARGEST = 10_000_000;

@Controller('offload/primes')
export class PrimesController {
  constructor(private readonly primes: PrimesService) {}

  @Get(':n')
  count(@Param('n', new IntegerInRangePipe(0, LARGEST)) n: number): Promise<PrimesAnswer> {
    return this.primes.count(n);
  }
}
