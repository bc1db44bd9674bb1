import { Controller, Get, Param } from '@nestjs/common';
import { CpuBound } from 'nestjs-cluster';
import { type FibonacciAnswer, fibonacci, LARGEST_FIBONACCI } from '../cpu/fibonacci.js';
import { IntegerInRangePipe } from '../pipes/integer-in-range.pipe.js';

@Controller('queued')
export class QueuedController {
  /** Run by a thread of whichever process consumes the queue. */
  @CpuBound({ queue: 'fibonacci' })
  @Get('fib/:n')
  fib(@Param('n', new IntegerInRangePipe(0, LARGEST_FIBONACCI)) n: number): FibonacciAnswer {
    return { n, fibonacci: fibonacci(n) };
  }
}
