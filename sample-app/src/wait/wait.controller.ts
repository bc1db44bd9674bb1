import { setTimeout } from 'node:timers/promises';
import { Controller, Get, Param } from '@nestjs/common';
import { IntegerInRangePipe } from '../pipes/integer-in-range.pipe.js';

@Controller('wait')
export class WaitController {
  @Get(':ms')
  async wait(
    @Param('ms', new IntegerInRangePipe(0, 60_000)) ms: number,
  ): Promise<{ waitedMs: number }> {
    await setTimeout(ms);
    return { waitedMs: ms };
  }
}
