import type { BootLogs } from '../../options/index.js';

/** What a worker keeps back until it is ready: its output, or the error alone that it does not come up by. */
export type KeepsBack = 'output' | 'error' | undefined;

/** @param first no worker of its slot was started before. */
export function whatIsKeptBack(bootLogs: BootLogs, slot: number, first: boolean): KeepsBack {
  switch (bootLogs) {
    case 'all':
      return undefined;
    case 'first':
      return slot === 0 && first ? 'error' : 'output';
    case 'none':
      return 'output';
  }
}
