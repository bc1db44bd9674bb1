import { describe, expect, it } from 'vitest';
import type { LoadReport } from '../../../../src/contract/messages.js';
import {
  isToGiveAway,
  nextSurplus,
  type Surplus,
  surplusRatios,
} from '../../../../src/decide/policies/rebalance.policy.js';
import { choose } from '../../../../src/worker/link/rebalance.js';

/** So many that chance explains 0.3 % of a difference. */
const M = 1_000_000;

const QUARTERS = [0.25, 0.25, 0.25, 0];
const ELEVENTHS = [...Array<number>(10).fill(1 / 11), 0];

/** Workers whose requests all cost the same, by their share of the mean load. */
function loaded(loads: readonly number[], { connections = 10, requests = M } = {}) {
  return loads.map((load) => ({ requests: load * requests, connections, utilization: load * 0.3 }));
}

const report = (requests: number, connections: number, utilization: number): LoadReport => ({
  requests,
  connections,
  utilization,
});

type Row = [what: string, reports: readonly LoadReport[], ratios: readonly number[]];

/** Floating-point noise aside. */
function expectRatios(_: string, reports: readonly LoadReport[], expected: readonly number[]) {
  expect(surplusRatios(reports)).toEqual(expected.map((ratio) => expect.closeTo(ratio, 6)));
}

/** A worker has so many requests, and its event loop is as busy by each. */
const served = (...requests: number[]) => requests.map((each) => report(each, 10, each / 10_000));

it.each<Row>([
  ['nothing where all carry the same', loaded([1, 1, 1]), [0, 0, 0]],
  ['what is above the mean, as a share of it all', loaded([1.5, 0.5]), [1 / 3, 0]],
  ['that of each', loaded([2, 1.25, 0.5, 0.25]), [1 / 2, 1 / 5, 0, 0]],
  ['nothing where nobody had a request', [report(0, 5, 0.9), report(0, 0, 0.1)], [0, 0]],
  ['nothing where nobody did anything', [report(0, 0, 0), report(0, 0, 0)], [0, 0]],
  ['nothing within 5 percent and chance', loaded([1.052, 0.948]), [0, 0]],
  ['all that is above the mean beyond it', loaded([1.054, 0.946]), [0.054 / 1.054, 0]],
  ['nothing within three standard deviations', served(134, 66), [0, 0]],
  ['there beyond them', served(136, 64), [36 / 136, 0]],
  ['nothing within those of 400 requests each', served(4 * 118, 4 * 82), [0, 0]],
  ['there beyond those', served(4 * 121, 4 * 79), [21 / 121, 0]],
  // 400 requests over four workers: chance is 30 %, as for two workers with 200.
  [
    'nothing by the noise of the mean worker',
    loaded([1.32, 0.9, 0.9, 0.88], { requests: 100 }),
    [0, 0, 0, 0],
  ],
  ['there where one has nothing: it is new', loaded([4 / 3, 4 / 3, 4 / 3, 0]), QUARTERS],
])('the surplus of workers is %s', expectRatios);

it.each<Row>([
  // The time of event loops is noisy.
  ['the same within a factor of two', [report(M, 10, 0.6), report(M, 10, 0.4)], [0, 0]],
  ['the same just within it', [report(M, 10, 0.66), report(M, 10, 0.34)], [0, 0]],
  // 0.5 each by the number of requests; the second cannot have had more than 2 x 0.2.
  [
    'twice the time of the event loop at most',
    [report(M, 10, 0.8), report(M, 10, 0.2)],
    [0.05 / 0.5, 0],
  ],
  // By their number 0.06 and 1.14; the first cannot have had less than 0.6 / 2.
  [
    'half the time of the event loop at least',
    [report(0.1 * M, 10, 0.6), report(1.9 * M, 10, 0.6)],
    [0, 0.42 / 1.14],
  ],
  // By their number 0.09 and 0.81; 0.4 and 0.2 by the clamp.
  ['more if they are heavy', [report(0.1 * M, 10, 0.8), report(0.9 * M, 10, 0.1)], [0.25, 0]],
])('requests that cost differently on each worker count for %s', expectRatios);

describe('where event loops are full', () => {
  const full = Array.from({ length: 10 }, () => report(M, 44, 1));
  /** Expected 4.5 and 1.636, for a tenth of the requests: 0.45 for 10^5 against 1.636 for 10^6. */
  const [slow, quick] = [4.5, 1.8 / 1.1];

  it.each<Row>([
    ['what waits counts by connections', [report(M, 30, 0.95), report(M, 10, 0.95)], [1 / 3, 0]],
    ['as many connections are the same', [report(M, 30, 1), report(M, 30, 0.95)], [0, 0]],
    // The same connections, half the requests: expected 0.6 and 1.2, so 0.012 and 0.012 each.
    ['longer requests count for more', [report(0.5 * M, 10, 0.9), report(M, 10, 0.9)], [0, 0]],
    [
      'much longer requests count for much more',
      [report(0.1 * M, 10, 0.9), report(M, 10, 0.9)],
      [(slow - quick) / 2 / slow, 0],
    ],
    ['that is from 80 percent on', [report(M, 30, 0.8), report(M, 10, 0.8)], [1 / 3, 0]],
    ['and not below', [report(M, 30, 0.79), report(M, 10, 0.79)], [0, 0]],
    ['a worker without a request that has room is new', [...full, report(0, 0, 0.1)], ELEVENTHS],
    // Were it left out, nobody would be above the mean.
    ['also one with little room', [...full, report(0, 0, 0.79)], ELEVENTHS],
    ['and not one without', [...full, report(0, 0, 0.8)], Array<number>(11).fill(0)],
    [
      'not where one has room: its event loop tells what it carries',
      [report(M, 30, 1), report(0.5 * M, 30, 0.5)],
      [0.25, 0],
    ],
    [
      'a worker that is full with no request is left out: nobody knows what it has',
      [report(M, 30, 0.95), report(M, 10, 0.95), report(0, 50, 1)],
      [1 / 3, 0, 0],
    ],
    ['nor does it make a single other one give', [report(M, 30, 0.95), report(0, 0, 1)], [0, 0]],
  ])('%s', expectRatios);

  it('a worker that is nearly full does not hide how much more waits for the others', () => {
    const two = surplusRatios([report(10_000, 150, 1), report(8_611, 31, 0.861)]);
    expect(two[0]).toBeGreaterThan(0.3);
    const reports = [report(10_000, 219, 1), report(10_000, 264, 1), report(7_917, 57, 0.79)];
    expect(surplusRatios(reports)[1]).toBeGreaterThan(0.1);
  });
});

describe('a worker that is far below the mean', () => {
  /** Nine workers share what the last one does not carry. */
  const besides = (least: number, options = {}) =>
    loaded([...Array<number>(9).fill((10 - least) / 9), least], options);
  const nine = (ratio: number) => [...Array<number>(9).fill(ratio), 0];
  const surplus = (least: number) => (10 - least) / 9 - 1;

  it.each<Row>([
    [
      'makes others give, also within the tolerance, a connection at least',
      besides(0.73),
      nine(0.1),
    ],
    [
      'makes them give the surplus where that is more than a connection',
      besides(0.73, { connections: 100 }),
      nine(0.03 / 1.03),
    ],
    [
      'makes them give less than one connection where a whole one would turn the tables',
      besides(0.84),
      nine(surplus(0.84) / (1 + surplus(0.84))),
    ],
    // Powers of two: nothing is rounded.
    [
      'may be given a connection that makes it the equal of the giver',
      [report(2 ** 20, 4, 0.5), report(2 ** 20, 4, 0.5), report(2 ** 19, 2, 0.25)],
      [1 / 4, 1 / 4, 0],
    ],
    ['is so from 15 percent and chance on', besides(0.86), nine(0)],
    // With 100 requests each chance is 30 %.
    ['is not so by chance', besides(0.56, { requests: 100 }), nine(0)],
    [
      'takes no connection from whoever is below the mean',
      loaded([1.4, 1.4, 0.98, 0.22]),
      [0.4 / 1.4, 0.4 / 1.4, 0, 0],
    ],
  ])('%s', expectRatios);

  it('is so beyond chance', () => {
    expect(surplusRatios(besides(0.54, { requests: 100 }))[0]).toBeGreaterThan(0);
  });
});

describe('a surplus over its rounds', () => {
  /** The surplus after rounds with these ratios. */
  const after = (...ratios: number[]) =>
    ratios.reduce<Surplus | undefined>(
      (previous, ratio) => nextSurplus(previous, ratio),
      undefined,
    );

  it.each<[what: string, ratios: number[], rounds: number, initialRatio: number]>([
    ['begins with its first round', [0.1], 1, 0.1],
    ['begins again after a round without one', [0.5, 0.5, 0, 0.1], 1, 0.1],
    // By a fifth of what it was at first.
    ['counts the rounds in which it does not shrink', [0.5, 0.5, 0.41, 0.41], 4, 0.5],
    ['counts also those in which it grows', [0.5, 0.6, 0.64], 3, 0.5],
    ['counts where it shrinks by just a fifth', [0.5, 0.4], 2, 0.5],
    ['counts anew once it has shrunk by more', [0.5, 0.5, 0.5, 0.3], 2, 0.3],
    ['goes on lasting then', [0.5, 0.3, 0.25], 3, 0.3],
    ['counts anew each time', [0.5, 0.3, 0.2], 2, 0.2],
    ['counts anew where it has grown by something new', [...Array(40).fill(0.06), 0.5], 1, 0.5],
    ['does not where it has grown by less', [0.06, 0.06, 0.21], 3, 0.06],
  ])('%s', (_, ratios, rounds, initialRatio) => {
    expect(after(...ratios)).toEqual({ ratio: ratios.at(-1), rounds, initialRatio });
  });

  it('is forgotten by a round without one', () => {
    expect(after(0.1, 0.1, 0)).toBeUndefined();
    expect(after(0)).toBeUndefined();
  });
});

describe('whether a surplus is acted on', () => {
  /** Rounds, up to the 1,000th, in which a surplus that does not shrink is acted on. */
  const roundsOf = (ratio: number) =>
    Array.from({ length: 1_000 }, (_, index) => index + 1).filter((rounds) =>
      isToGiveAway({ ratio, rounds, initialRatio: ratio }),
    );

  it('is at once where it is clear, and in its second round where it is small', () => {
    expect(roundsOf(0.16)[0]).toBe(1);
    expect(roundsOf(0.15).slice(0, 2)).toEqual([2, 3]);
  });

  it('is ever less where that does not help, and never not at all', () => {
    const later = roundsOf(0.5).slice(20);
    expect(later.slice(0, 6)).toEqual([32, 64, 128, 192, 256, 320]);
    expect(new Set(later.slice(2).map((round, index) => round - later[index + 1]!))).toEqual(
      new Set([64]),
    );
  });
});

/** A seeded random number in 0..1 (mulberry32). */
function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Requests that a worker can answer in a round. */
const CAPACITY = 10_000;

/**
 * Clients on workers, all with the same rate: each round those that the policy and `choose` pick
 * connect again, to a worker at random. `rate` is how many requests a client would make in a round,
 * were it answered at once.
 */
class Model {
  #surpluses: (Surplus | undefined)[] = [];

  /** @param clients how many each worker has. */
  constructor(
    readonly clients: number[],
    private readonly rate: number,
    private readonly random: () => number,
  ) {}

  round(): void {
    const reports = this.clients.map((connections) => {
      const demand = connections * this.rate;
      return report(Math.min(demand, CAPACITY), connections, Math.min(1, demand / CAPACITY));
    });
    let moved = 0;
    for (const [worker, ratio] of surplusRatios(reports).entries()) {
      const surplus = nextSurplus(this.#surpluses[worker], ratio);
      this.#surpluses[worker] = surplus;
      if (surplus === undefined || !isToGiveAway(surplus)) continue;
      const { requests, connections } = reports[worker]!;
      const one = { recentRequests: requests / connections };
      const { length } = choose(Array<typeof one>(connections).fill(one), surplus.ratio);
      this.clients[worker]! -= length;
      moved += length;
    }
    for (let client = 0; client < moved; client += 1) {
      this.clients[Math.floor(this.random() * this.clients.length)]! += 1;
    }
  }
}

const SEEDS = Array.from({ length: 25 }, (_, seed) => seed + 1);

/** The worker on which each client begins. */
const STARTS = {
  'all on one worker': () => 0,
  'none on the last worker, which is new': (client: number, workers: number) =>
    client % (workers - 1),
} as const;

/** Demand, as a share of the capacity of all workers. */
const DEMANDS = [
  ['with room', 0.4],
  ['with all of them full', 2.5],
] as const;

describe.each([2, 3, 4, 8])('connections of the same rate on %d workers', (workers) => {
  describe.each(Object.keys(STARTS) as (keyof typeof STARTS)[])('that begin %s', (start) => {
    it.each(DEMANDS)('are within 15 percent of even after 20 rounds, and stay, %s', (_, used) => {
      for (const seed of SEEDS) {
        const perWorker = 30 + 10 * (seed % 8);
        const clients = Array<number>(workers).fill(0);
        for (let client = 0; client < workers * perWorker; client += 1) {
          clients[STARTS[start](client, workers)]! += 1;
        }
        const model = new Model(clients, (CAPACITY * used) / perWorker, seededRandom(seed));
        const uneven: object[] = [];
        for (let round = 1; round <= 50; round += 1) {
          model.round();
          const isUneven = Math.max(...clients) > 1.15 * perWorker;
          if (round >= 20 && isUneven) uneven.push({ seed, round, clients: [...clients] });
        }
        expect(uneven).toEqual([]);
      }
    });
  });
});
