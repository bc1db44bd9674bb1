import { Controller, type MessageEvent, Sse } from '@nestjs/common';
import { ClusterService } from 'nestjs-cluster';
import { map, type Observable, timer } from 'rxjs';

@Controller('events')
export class EventsController {
  constructor(private readonly cluster: ClusterService) {}

  @Sse()
  events(): Observable<MessageEvent> {
    const { slot } = this.cluster.identity;
    return timer(0, 1_000).pipe(map((counter) => ({ data: { slot, counter } })));
  }
}
