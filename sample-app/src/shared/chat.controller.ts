import { Controller, Get, HttpCode, HttpStatus, Param, Post } from '@nestjs/common';
import { ClusterService } from 'nestjs-cluster';
import { ChatGateway } from './chat.gateway.js';

@Controller('shared/chat')
export class ChatController {
  constructor(
    private readonly cluster: ClusterService,
    private readonly gateway: ChatGateway,
  ) {}

  @Get()
  async look(): Promise<{ slot: number; clients: number }> {
    return { slot: this.cluster.identity.slot, clients: await this.gateway.clients() };
  }

  @Post(':text')
  @HttpCode(HttpStatus.OK)
  say(@Param('text') text: string): { slot: number } {
    const { slot } = this.cluster.identity;
    this.gateway.say(text, slot);
    return { slot };
  }
}
