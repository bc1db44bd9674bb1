/** How values are merged. `total`: a sum over living and ended workers, which only grows. */
export type Rule = 'total' | 'sum' | 'first' | 'min' | 'max' | 'mean';

/**
 * Fractions of totals are rounded to multiples of 2^-40, so that sums are exact in any order and
 * grouping. Otherwise a sum of the same floats could differ in its last bit when bodies are folded,
 * and Prometheus takes the smallest fall of a counter for a restart.
 */
const GRID = 2 ** 40;

/** Totals are shown with nine decimals. If an exact sum never falls, its rounded value never falls either. */
const SHOWN_DIGITS = 1e9;
const MAX_ROUNDED = Number.MAX_SAFE_INTEGER / SHOWN_DIGITS;

/** One value, merged step by step from the values of several workers. */
export class Cell {
  /** The value, or the whole part of a total. */
  #value = 0;
  /** The fraction of a total. Both parts are exact, but their sum as a float may not be. */
  #fraction = 0;
  #count = 0;

  constructor(private readonly rule: Rule) {}

  add(value: number): void {
    this.#count += 1;
    if (this.rule === 'total') this.#addExactly(value);
    else if (this.#count === 1) this.#value = value;
    else if (this.rule === 'min') this.#value = Math.min(this.#value, value);
    else if (this.rule === 'max') this.#value = Math.max(this.#value, value);
    else if (this.rule !== 'first') this.#value += value;
  }

  /** `null` if no worker had a value. */
  value(): number | null {
    if (this.#count === 0) return null;
    return this.rule === 'mean' ? this.#value / this.#count : this.#value + this.#fraction;
  }

  /** The value to show: a total is rounded, which hides the effect of the grid on its last digits. */
  shown(): number | null {
    const value = this.value();
    if (this.rule !== 'total' || value === null || !(Math.abs(value) < MAX_ROUNDED)) return value;
    return Math.round(value * SHOWN_DIGITS) / SHOWN_DIGITS;
  }

  /** The part of an exact total that {@link value} cannot hold. */
  residue(): number {
    const rounded = this.#value + this.#fraction;
    return Number.isFinite(rounded) ? this.#fraction - (rounded - this.#value) : 0;
  }

  #addExactly(value: number): void {
    if (!Number.isFinite(value)) {
      this.#value += value;
      return;
    }
    const whole = Math.floor(value);
    this.#value += whole;
    this.#fraction += Math.floor((value - whole) * GRID) / GRID;
  }
}
