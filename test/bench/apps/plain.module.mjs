import { Controller, Get, Module } from '@nestjs/common';
import { AppController } from '../../../sample-app/dist/app.controller.js';
import { AppService } from '../../../sample-app/dist/app.service.js';
import { CpuModule } from '../../../sample-app/dist/cpu/cpu.module.js';
import { EchoModule } from '../../../sample-app/dist/echo/echo.module.js';
import { FaultsModule } from '../../../sample-app/dist/faults/faults.module.js';
import { WaitModule } from '../../../sample-app/dist/wait/wait.module.js';

class WhoamiController {
  whoami() {
    return { slot: null, pid: process.pid, generation: null };
  }
}
// Applies the decorators as TypeScript's compiler does: this file is plain JavaScript.
const descriptor = Object.getOwnPropertyDescriptor(WhoamiController.prototype, 'whoami');
Get('whoami')(WhoamiController.prototype, 'whoami', descriptor);
Controller()(WhoamiController);

/** The sample app's routes without this package. */
export class PlainModule {}
Module({
  imports: [
    CpuModule,
    EchoModule,
    WaitModule,
    ...(process.env.SAMPLE_FAULTS ? [FaultsModule] : []),
  ],
  controllers: [AppController, WhoamiController],
  providers: [AppService],
})(PlainModule);
