import type { LogOptions } from '../options/index.js';

type Write = NonNullable<LogOptions['write']>;

/**
 * Wraps the user's `log.write` so that its errors do not end the process.
 *
 * @param tell is called with the first error only: later errors would be the same for each line.
 */
export function guardWrite(write: Write, tell: (error: unknown) => void): Write {
  let told = false;
  const threw = (error: unknown): void => {
    if (told) return;
    told = true;
    tell(error);
  };
  return (line, level) => {
    try {
      const result: unknown = write(line, level);
      if (result instanceof Promise) result.catch(threw);
    } catch (error) {
      threw(error);
    }
  };
}
