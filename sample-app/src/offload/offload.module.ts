import { Module } from '@nestjs/common';
import { OffloadController } from './offload.controller.js';

@Module({ controllers: [OffloadController] })
export class OffloadModule {}
