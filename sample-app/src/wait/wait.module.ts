import { Module } from '@nestjs/common';
import { WaitController } from './wait.controller.js';

@Module({ controllers: [WaitController] })
export class WaitModule {}
