import { Controller, Get } from '@nestjs/common';
import { ClusterService } from 'nestjs-cluster';

@Controller('whoami')
export class WhoamiController {
  constructor(private readonly cluster: ClusterService) {}

  @Get()
  whoami(): { slot: number; pid: number; generation: number } {
    const { slot, pid, generation } = this.cluster.identity;
    return { slot, pid, generation };
  }
}
