import { Controller, Get, HttpCode, HttpStatus, Param } from '@nestjs/common';
import { IntegerInRangePipe } from '../pipes/integer-in-range.pipe.js';

/** V8 stores an array of fractions as 8 bytes each, on its own heap. */
const DOUBLES_PER_MB = (1024 * 1024) / 8;

/** Causes the faults of production on request. Only there with SAMPLE_FAULTS=1. */
@Controller('faults')
export class FaultsController {
  private readonly leaked: number[][] = [];

  @Get('crash')
  @HttpCode(HttpStatus.ACCEPTED)
  crash(): { crashing: true } {
    setImmediate(() => {
      throw new Error('sample crash');
    });
    return { crashing: true };
  }

  @Get('exit/:code')
  exit(@Param('code', new IntegerInRangePipe(0, 255)) code: number): never {
    process.exit(code);
  }

  @Get('spin')
  spin(): never {
    // oxlint-disable-next-line no-empty
    while (true) {}
  }

  @Get('block/:ms')
  block(@Param('ms', new IntegerInRangePipe(0, 600_000)) ms: number): { blockedMs: number } {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
    return { blockedMs: ms };
  }

  @Get('leak/:mb')
  leak(@Param('mb', new IntegerInRangePipe(1, 65_536)) mb: number): { leakedMb: number } {
    for (let i = 0; i < mb; i++) {
      this.leaked.push(Array<number>(DOUBLES_PER_MB).fill(0.5));
    }
    return { leakedMb: this.leaked.length };
  }
}
