import type { NestProject } from './nest-project.js';

/**
 * Makes a monorepo of a project, moves its `@CpuBound()` method into a library, and builds the app as
 * the Nest CLI does by default.
 *
 * @param generateLibrary the command that generates the library `heavy`.
 */
export async function makeMonorepo(project: NestProject, generateLibrary: string): Promise<void> {
  await project.command('nest generate app other');
  await project.command(generateLibrary);
  const service = await project.read('libs/heavy/src/heavy.service.ts');
  await project.write({
    'libs/heavy/src/heavy.service.ts': service
      .replace(/^/, IMPORTS)
      .replace(/class HeavyService \{\s*\}/, HEAVY_SERVICE),
    'apps/app/src/app.service.ts': APP_SERVICE,
  });
  await project.edit('apps/app/src/app.module.ts', [
    [/^/, "import { HeavyModule } from '@app/heavy';\n"],
    ['imports: [', 'imports: [HeavyModule, '],
  ]);
  await project.command('nest build app');
}

const IMPORTS = `
import { CpuBound } from 'nestjs-cluster';
import { isMainThread } from 'node:worker_threads';
`;

const HEAVY_SERVICE = `class HeavyService {
  @CpuBound()
  async report(): Promise<string> {
    return isMainThread ? 'event loop' : 'thread';
  }
}`;

const APP_SERVICE = `
import { Inject, Injectable } from '@nestjs/common';
import { HeavyService } from '@app/heavy';

@Injectable()
export class AppService {
  constructor(@Inject(HeavyService) private readonly heavy: HeavyService) {}

  getHello(): string {
    return 'Hello World!';
  }

  report(): Promise<string> {
    return this.heavy.report();
  }
}
`;
