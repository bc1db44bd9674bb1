import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from './temporary-directory.js';

const preload = join(import.meta.dirname, '../fixtures/preload/hold-boot.cjs');

/** Keeps the slots empty whose workers die after `begin()`: no new worker becomes ready in the test. */
export class HeldBoots {
  readonly #file = join(temporaryDirectory(), 'hold');
  readonly execArgv = ['--require', preload];
  readonly env = { TEST_HOLD: this.#file };

  begin(): void {
    writeFileSync(this.#file, '');
  }
}
