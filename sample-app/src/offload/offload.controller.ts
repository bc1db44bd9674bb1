import { Controller, Get, Param } from '@nestjs/common';
import { CpuBound } from 'nestjs-cluster';
import { type FibonacciAnswer, fibonacci, LARGEST_FIBONACCI } from '../cpu/fibonacci.js';
import { type SumAnswer, sumOfRandomSquares } from '../cpu/sum-of-squares.js';
import { IntegerInRangePipe } from '../pipes/integer-in-range.pipe.js';

@Controller('offload')
export class OffloadController {
  @CpuBound()
  @Get('test')
  test(): FibonacciAnswer {
    return { n: 35, fibonacci: fibonacci(35) };
  }

  @CpuBound()
  @Get('fib/:n')
  fib(@Param('n', new IntegerInRangePipe(0, LARGEST_FIBONACCI)) n: number): FibonacciAnswer {
    return { n, fibonacci: fibonacci(n) };
  }

  @CpuBound()
  @Get('slow')
  slow(): SumAnswer {
    return { sum: sumOfRandomSquares(100_000) };
  }
}
