import { Controller, Get, UseGuards } from '@nestjs/common';
import { ThrottlerGuard } from '@nestjs/throttler';
import { ClusterService } from 'nestjs-cluster';

@Controller('shared/limited')
@UseGuards(ThrottlerGuard)
export class LimitedController {
  constructor(private readonly cluster: ClusterService) {}

  /** Five in ten seconds, whichever workers answer them. */
  @Get()
  limited(): { slot: number } {
    return { slot: this.cluster.identity.slot };
  }
}
