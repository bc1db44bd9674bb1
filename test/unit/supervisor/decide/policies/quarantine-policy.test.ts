import { describe, expect, it } from 'vitest';
import { type Fingerprint, NO_ROUTE } from '../../../../../src/contract/ipc/index.js';
import {
  NO_QUARANTINE,
  type QuarantineState,
  requestLived,
  trialLived,
  trialsDue,
  workerEnded,
} from '../../../../../src/supervisor/decide/policies/quarantine.policy.js';

const request = (url: string, route = '/items/:id'): Fingerprint => ({
  method: 'GET',
  route,
  url,
  path: `/items/${url}`,
});

const KILLER = request('7');
const OTHER = request('8');
const HELLO = request('hello', '/hello');

/** Workers end, one a second, each with these requests at work. */
function ended(deaths: readonly (readonly Fingerprint[])[], certain = false, from = NO_QUARANTINE) {
  return deaths.reduce<QuarantineState>(
    (state, found, second) => workerEnded(state, found, certain, second * 1_000),
    from,
  );
}

const told = ({ quarantined }: QuarantineState) =>
  quarantined.map(({ method, route, url, deaths }) => [method, route, url, deaths]);

describe('a request that ends workers', () => {
  it('is under quarantine once it has ended two, not before', () => {
    expect(told(ended([[KILLER]]))).toEqual([]);
    expect(told(ended([[KILLER], [KILLER]]))).toEqual([['GET', '/items/:id', '7', 2]]);
  });

  it('is found among those that were at work beside it by chance', () => {
    expect(told(ended([[KILLER, HELLO], [KILLER]]))).toEqual([['GET', '/items/:id', '7', 2]]);
  });

  it('is the one that had begun last, where others were at work at both ends', () => {
    const both = [HELLO, KILLER];
    expect(told(ended([both, both]))).toEqual([['GET', '/items/:id', '7', 2]]);
    // Workers that it had ended by then end with the same requests at work.
    expect(told(ended([both, both, both, both, both]))).toHaveLength(1);
  });

  it('counts once for each worker, however many of it were at work', () => {
    expect(told(ended([[HELLO, HELLO, HELLO, KILLER]]))).toEqual([]);
    expect(
      told(
        ended([
          [HELLO, HELLO, KILLER],
          [HELLO, KILLER],
        ]),
      ),
    ).toEqual([['GET', '/items/:id', '7', 2]]);
  });

  it('stands for its route where another request of that has ended a worker, and none lived', () => {
    expect(told(ended([[KILLER], [OTHER]]))).toEqual([['GET', '/items/:id', null, 2]]);
  });

  it('stands for itself alone where another request of the route lived', () => {
    const one = requestLived(ended([[KILLER]]), request('9'));
    expect(told(ended([[OTHER]], false, one))).toEqual([]);
    expect(told(ended([[OTHER], [OTHER]], false, one))).toEqual([['GET', '/items/:id', '8', 2]]);
  });

  it('stands for its route where five different ones have ended workers, though others live', () => {
    const one = requestLived(ended([[KILLER]]), request('9'));
    const all = ended(
      ['1', '2', '3', '4'].map((url) => [request(url)]),
      false,
      one,
    );
    expect(told(all)).toEqual([['GET', '/items/:id', null, 5]]);
  });

  it('is found where the client varies the path, and no route handles it', () => {
    const deaths = ['1', '2', '3', '4', '5'].map((url) => [request(url, NO_ROUTE)]);
    expect(told(ended(deaths.slice(0, 4)))).toEqual([]);
    expect(told(ended(deaths))).toEqual([['GET', NO_ROUTE, null, 5]]);
    expect(told(ended([...deaths.slice(0, 3), deaths[0]!]))).toEqual([['GET', NO_ROUTE, '1', 2]]);
  });

  it('is forgotten where it ends one worker in more than five minutes', () => {
    const first = workerEnded(NO_QUARANTINE, [KILLER], true, 0);
    expect(told(workerEnded(first, [KILLER], true, 299_999))).toHaveLength(1);
    expect(told(workerEnded(first, [KILLER], true, 300_000))).toEqual([]);
  });
});

describe('a request that lived', () => {
  it('is cleared where it was only at work when a worker ended', () => {
    const cleared = requestLived(ended([[KILLER, HELLO]]), HELLO);
    expect(told(ended([[KILLER, HELLO]], false, cleared))).toEqual([['GET', '/items/:id', '7', 2]]);
  });

  it('is not cleared where the error was its own: it ends workers at times', () => {
    const still = requestLived(ended([[KILLER]], true), KILLER);
    expect(told(ended([[KILLER]], true, still))).toHaveLength(1);
  });

  it('changes nothing where nobody suspects its route', () => {
    const state = ended([[KILLER]]);
    expect(requestLived(state, HELLO)).toBe(state);
  });
});

describe('a quarantine', () => {
  const quarantined = ended([[KILLER], [KILLER]]);

  it('does not count requests that are under it already', () => {
    expect(told(ended([[KILLER], [KILLER]], true, quarantined))).toHaveLength(1);
  });

  it('allows one trial a minute', () => {
    expect(trialsDue(quarantined, 60_999).due).toEqual([]);
    const first = trialsDue(quarantined, 61_000);
    expect(first.due).toEqual([1]);
    expect(trialsDue(first.state, 120_999).due).toEqual([]);
    expect(trialsDue(first.state, 121_000).due).toEqual([1]);
  });

  it('ends with a trial that lives, and begins anew with two more deaths', () => {
    const over = trialLived(quarantined, 1);
    expect(told(over)).toEqual([]);
    expect(told(ended([[KILLER]], false, over))).toEqual([]);
    expect(over.quarantined).toEqual([]);
    expect(ended([[KILLER], [KILLER]], false, over).quarantined).toMatchObject([{ id: 2 }]);
  });
});

describe('what is remembered', () => {
  it('has a bound, whatever clients send', () => {
    let state = NO_QUARANTINE;
    for (let n = 0; n < 1_000; n += 1) {
      const found = Array.from({ length: 16 }, (_, i) =>
        request(`${n} ${i}`, i % 2 ? `/${n}` : `hash ${n} ${i}`),
      );
      state = workerEnded(state, found, false, n);
      state = workerEnded(state, found, false, n);
    }
    expect(state.quarantined).toHaveLength(100);
    expect(state.suspects.length).toBeLessThanOrEqual(100);
    for (const { urls } of state.suspects) expect(urls.length).toBeLessThanOrEqual(20);
  });
});
