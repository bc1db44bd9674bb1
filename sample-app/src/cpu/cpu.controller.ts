import { Controller, Get, Param } from '@nestjs/common';
import { type FibonacciAnswer, fibonacci, LARGEST_FIBONACCI } from './fibonacci.js';
import { type SumAnswer, sumOfRandomSquares } from './sum-of-squares.js';
import { IntegerInRangePipe } from '../pipes/integer-in-range.pipe.js';

@Controller()
export class CpuController {
  @Get('test')
  test(): FibonacciAnswer {
    return { n: 35, fibonacci: fibonacci(35) };
  }

  @Get('fib/:n')
  fib(@Param('n', new IntegerInRangePipe(0, LARGEST_FIBONACCI)) n: number): FibonacciAnswer {
    return { n, fibonacci: fibonacci(n) };
  }

  @Get('slow')
  slow(): SumAnswer {
    return { sum: sumOfRandomSquares(100_000) };
  }
}
