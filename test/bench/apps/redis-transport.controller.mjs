import { Controller } from '@nestjs/common';
import { MessagePattern } from '@nestjs/microservices';
import { burn } from './burn.cjs';

export class BurnController {
  burn() {
    return burn(50e6);
  }
}
Controller()(BurnController);
MessagePattern('burn')(
  BurnController.prototype,
  'burn',
  Object.getOwnPropertyDescriptor(BurnController.prototype, 'burn'),
);
