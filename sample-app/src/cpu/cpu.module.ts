import { Module } from '@nestjs/common';
import { CpuController } from './cpu.controller.js';

@Module({ controllers: [CpuController] })
export class CpuModule {}
