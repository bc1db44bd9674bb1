const CSI = '\u001b[';

/** Switches to the terminal's alternate screen and hides the cursor, and undoes both. */
const ENTER = `${CSI}?1049h${CSI}?25l`;
const LEAVE = `${CSI}?25h${CSI}?1049l`;

const CTRL_C = '\u0003';

/** Draws on the whole terminal, and restores the terminal at the end. */
export class Screen {
  #isLeft = false;
  #lines: readonly string[] = [];
  readonly #onResize = (): void => this.draw(this.#lines);
  readonly #onInput = (data: Buffer): void => this.#press(data.toString('utf8'));
  readonly #onSignal = (): void => this.#end();

  /** @param onKey is called for each key. The keys q and Ctrl-C end the process instead. */
  constructor(private readonly onKey: (key: string) => void) {
    process.stdout.write(ENTER);
    process.stdout.on('resize', this.#onResize);
    // Without these listeners a signal would end the process and leave the terminal as it is.
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const)
      process.once(signal, this.#onSignal);
    if (!process.stdin.isTTY) return;
    process.stdin.setRawMode(true);
    process.stdin.on('data', this.#onInput);
  }

  /** Draws the lines. Leaves out lines and characters that do not fit the terminal. */
  draw(lines: readonly string[]): void {
    this.#lines = lines;
    if (this.#isLeft) return;
    // Some terminals report a size of 0.
    const columns = process.stdout.columns || 80;
    const rows = process.stdout.rows || 24;
    const fit = lines.slice(0, rows).map((line) => `${line.slice(0, columns)}${CSI}K`);
    process.stdout.write(`${CSI}H${fit.join('\r\n')}${CSI}J`);
  }

  leave(): void {
    if (this.#isLeft) return;
    this.#isLeft = true;
    process.stdout.off('resize', this.#onResize);
    process.stdin.off('data', this.#onInput).pause();
    if (process.stdin.isTTY) process.stdin.setRawMode(false);
    process.stdout.write(LEAVE);
  }

  #press(key: string): void {
    if (key === 'q' || key === CTRL_C) this.#end();
    else this.onKey(key);
  }

  #end(): void {
    this.leave();
    process.exit(0);
  }
}
