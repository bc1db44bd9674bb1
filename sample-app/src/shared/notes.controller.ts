import { Body, Controller, Get, NotFoundException, Param, Post } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import { ClusterConfigurationError, ClusterService } from 'nestjs-cluster';
import { ClusterEvents, ClusterRequestError } from '@nestjs-cluster/shared/events';
import { IntegerInRangePipe } from '../pipes/integer-in-range.pipe.js';

const MAX_NOTES = 10;

@Controller('shared/notes')
export class NotesController {
  private notes: unknown[] = [];

  constructor(
    private readonly cluster: ClusterService,
    private readonly events: ClusterEvents,
  ) {}

  /** Tells every worker. */
  @Post()
  async add(@Body() note: unknown): Promise<{ workers: number }> {
    return { workers: await this.events.emit('sample.note', note) };
  }

  /** Asks the worker of a slot what it has heard. */
  @Get(':slot')
  async heardBy(@Param('slot', new IntegerInRangePipe(0, 255)) slot: number): Promise<unknown> {
    try {
      return await this.events.request('sample.heard', undefined, { to: slot });
    } catch (error) {
      // The worker that was asked has gone, or the slot does not exist.
      const isNobody =
        error instanceof ClusterRequestError || error instanceof ClusterConfigurationError;
      throw isNobody ? new NotFoundException(error.message) : error;
    }
  }

  @OnEvent('sample.note')
  note(note: unknown): void {
    this.notes = [...this.notes, note].slice(-MAX_NOTES);
  }

  @OnEvent('sample.heard')
  heard(): { slot: number; notes: unknown[] } {
    return { slot: this.cluster.identity.slot, notes: this.notes };
  }
}
