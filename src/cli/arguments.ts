import { InvalidArgumentError } from 'commander';
import { MAX_WORKERS } from '../contract/options/schema.js';

/** `EX_USAGE` of sysexits.h. */
export const USAGE_EXIT_CODE = 64;

/** A parser of a whole number from 1 to `max`. */
export function wholeNumber(max: number, what: string): (text: string) => number {
  return (text) => {
    const value = /^\d{1,5}$/.test(text) ? Number(text) : 0;
    if (value >= 1 && value <= max) return value;
    throw new InvalidArgumentError(`expected ${what} from 1 to ${max}.`);
  };
}

function slotNumber(text: string): number {
  if (/^\d{1,3}$/.test(text) && Number(text) < MAX_WORKERS) return Number(text);
  throw new InvalidArgumentError('expected the number of a slot, as status shows it.');
}

export const SLOT_ARGUMENT = [
  '<slot>',
  'number of the slot, from 0; status shows them',
  slotNumber,
] as const;
