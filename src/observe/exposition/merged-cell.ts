/** How values become one. `total`: a sum that only ever grows, over living and ended workers. */
export type Rule = 'total' | 'sum' | 'first' | 'min' | 'max' | 'mean';

/**
 * Grid on which the fractions of totals are added: 2^-40. Sums on it are exact in whatever order
 * and grouping they are made. Without it the sum of the same floats differs in its last bit when a
 * body is folded, and Prometheus takes the smallest fall of a counter for a restart.
 */
const GRID = 2 ** 40;

/** The shown value of a total: if an exact sum never falls, its rounded value never falls either. */
const SHOWN_DIGITS = 1e9;
const MAX_ROUNDED = Number.MAX_SAFE_INTEGER / SHOWN_DIGITS;

/** One value, merged step by step from the values of several workers. */
export class Cell {
  /** The value, or the whole part of a total. */
  #value = 0;
  /** The fraction of a total. The two parts are exact, but their sum need not be. */
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

  /** The same without what the grid does to the last digits of a total. */
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
