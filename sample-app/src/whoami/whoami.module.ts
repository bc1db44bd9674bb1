import { Module } from '@nestjs/common';
import { WhoamiController } from './whoami.controller.js';

@Module({ controllers: [WhoamiController] })
export class WhoamiModule {}
