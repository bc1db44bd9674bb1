import { Controller, Get } from '@nestjs/common';
import { CpuBound } from 'nestjs-cluster';
import { burn } from './burn.cjs';

export class QueuesController {
  light() {
    return { ok: true };
  }
  local() {
    return { ok: true };
  }
  queued() {
    return { ok: true };
  }
  burn() {
    return burn(50e6);
  }
}

function method(name, ...decorators) {
  const { prototype } = QueuesController;
  for (const decorate of decorators) {
    const before = Object.getOwnPropertyDescriptor(prototype, name);
    Object.defineProperty(prototype, name, decorate(prototype, name, before) ?? before);
  }
}

Controller()(QueuesController);
method('light', Get('light'));
method('local', CpuBound(), Get('local'));
method('queued', CpuBound({ queue: 'small' }), Get('queued'));
method('burn', CpuBound({ queue: 'large' }), Get('burn'));
