/**
 * How values become one. `total`: a sum that only ever grows, over the living
 * and the dead.
 */
export type Rule = 'total' | 'sum' | 'first' | 'min' | 'max' | 'mean';

/**
 * Grid on which the fractions of totals are added: 2^-40. Sums on it are exact
 * in whatever order and grouping they are made. Without it the sum of the same
 * floats differs in its last bit when a body is folded, and Prometheus takes the
 * smallest fall of a counter for a restart.
 */
const GRID = 2 ** 40;

/** What is shown of a total: rounding an exact sum that never falls gives one that never falls. */
const SHOWN_DIGITS = 1e9;
const MAX_ROUNDED = Number.MAX_SAFE_INTEGER / SHOWN_DIGITS;

/** One value while it is put together of those of several workers. */
export class Cell {
  /** The value; of a total, its whole part. */
  #value = 0;
  /** Of a total: exact, and so is the whole part, where their sum need not be. */
  #fraction = 0;
  #count = 0;

  add(rule: Rule, value: number): void {
    this.#count += 1;
    if (rule === 'total') return this.#addExactly(value);
    if (this.#count === 1) {
      this.#value = value;
      return;
    }
    switch (rule) {
      case 'sum':
      case 'mean':
        this.#value += value;
        return;
      case 'min':
        this.#value = Math.min(this.#value, value);
        return;
      case 'max':
        this.#value = Math.max(this.#value, value);
        return;
      case 'first':
        return;
    }
  }

  /** `null` where nobody had one. */
  value(rule: Rule): number | null {
    if (this.#count === 0) return null;
    return rule === 'mean' ? this.#value / this.#count : this.#value + this.#fraction;
  }

  /** The same without what the grid does to the last digits of a total. */
  shown(rule: Rule): number | null {
    const value = this.value(rule);
    if (rule !== 'total' || value === null || !(Math.abs(value) < MAX_ROUNDED)) return value;
    return Math.round(value * SHOWN_DIGITS) / SHOWN_DIGITS;
  }

  /** What of an exact total does not fit into one number beside {@link value}. */
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
