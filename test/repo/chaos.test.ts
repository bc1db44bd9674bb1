import { describe, expect, it } from 'vitest';
import { FAULTS } from '../chaos/faults.mjs';
import { allowance, flatness, overdue } from '../chaos/judge.mjs';
import { schedule, timetable } from '../chaos/schedule.mjs';
import { fallen, readCounters } from '../chaos/scraper.mjs';

const LONGEST_PAUSE_MS = 500;

function sequence(seed: number, length: number) {
  const coming = schedule(seed, FAULTS, LONGEST_PAUSE_MS);
  return Array.from({ length }, () => {
    const { fault, parameters, pauseMs } = coming.next().value!;
    return { name: fault.name, parameters, pauseMs };
  });
}

describe('the faults of a chaos run', () => {
  it('are decided by the seed alone', () => {
    expect(sequence(7, 60)).toEqual(sequence(7, 60));
    expect(sequence(7, 60)).not.toEqual(sequence(8, 60));
  });

  it('are all made once before one is made again', () => {
    const names = sequence(7, 2 * FAULTS.length).map(({ name }) => name);
    expect(new Set(names.slice(0, FAULTS.length)).size).toBe(FAULTS.length);
    expect(names.slice(FAULTS.length)).not.toEqual(names.slice(0, FAULTS.length));
  });
});

describe('the timetable of a soak', () => {
  it('has a kill every five minutes and a reload every ten, also where a fault takes its time', () => {
    let now = 0;
    const coming = timetable({ kill: 'kill', reload: 'reload' }, () => now);
    const minutes = Array.from({ length: 6 }, () => {
      const { fault, pauseMs } = coming.next().value!;
      now += pauseMs + 20_000;
      return `${fault} ${(now - 20_000) / 60_000}`;
    });
    expect(minutes).toEqual(['kill 2', 'reload 4', 'kill 7', 'kill 12', 'reload 14', 'kill 17']);
  });
});

describe('a loss of a chaos run', () => {
  const death = { pid: 42, allowedAt: 9_900, at: 10_000, fault: 'kill' };
  const unexplained = { ...death, fault: undefined };
  const begun = { since: 9_500, at: 10_100, answered: true, pid: 42 };
  const notAccepted = { ...begun, answered: false, pid: undefined };
  const late = { since: 20_000, at: 20_100 };

  it.each([
    ['a fault killed its worker after it was begun', begun, 'kill'],
    ['a fault killed a worker and nobody had answered', notAccepted, 'kill, owner unknown'],
  ])('is allowed where %s', (_name, loss, cause) => {
    expect(allowance(loss, [death])).toBe(cause);
  });

  it.each([
    ['a fault killed another worker', { ...begun, pid: 43 }, [death]],
    ['its worker was dead before', { ...begun, ...late }, [death]],
    ['the fault came after it', { ...begun, since: 7_000, at: 8_000 }, [death]],
    ['its worker died of no fault', begun, [unexplained]],
    ['nothing died', notAccepted, []],
    ['somebody had answered on it', { ...notAccepted, answered: true }, [death]],
    ['nobody had answered and the death was before', { ...notAccepted, ...late }, [death]],
  ])('is not allowed where %s', (_name, loss, deaths) => {
    expect(allowance(loss, deaths)).toBeUndefined();
  });
});

describe('a call that waited too long for a thread', () => {
  const what = '503 {"message":"it waited too long for a thread"}';
  const group = { name: 'group', stopped: { from: 10_000, to: 16_000 } };
  const call = { what, asked: 9_990, at: 16_010 };

  it('is allowed where it waited while everything was stopped', () => {
    expect(overdue(call, [group])).toBe('group, waited 5 s for a thread');
  });

  it.each([
    ['nothing was stopped', call, []],
    ['it got another answer', { ...call, what: '500 {"message":"other"}' }, [group]],
    ['it waited less', { ...call, asked: 11_100 }, [group]],
    ['it would have waited that long anyway', { ...call, asked: 4_000 }, [group]],
    ['it waited afterwards', { ...call, asked: 15_900, at: 21_000 }, [group]],
    ['it was asked afterwards', { ...call, asked: 16_001, at: 21_900 }, [group]],
    ['only the primary was stopped', call, [{ ...group, name: 'primary' }]],
  ])('is not allowed where %s', (_name, loss, faults) => {
    expect(overdue(loss, faults)).toBeUndefined();
  });
});

describe('the flatness of a chaos run', () => {
  const samples = (descriptors: (index: number) => number) =>
    Array.from({ length: 30 }, (_value, index) => ({
      descriptors: descriptors(index),
      heapBytes: 7e6,
      residentBytes: 7e7,
    }));
  const notFlat = (descriptors: (index: number) => number) =>
    flatness(samples(descriptors)).filter(({ flat }) => !flat);

  it('forgives warm-up, and one odd sample', () => {
    expect(notFlat((index) => (index < 10 ? index : index === 20 ? 90 : 10))).toEqual([]);
  });

  it('finds what grows by one each fault', () => {
    expect(notFlat((index) => 20 + index)).toMatchObject([{ name: 'descriptors', early: 34.5 }]);
  });
});

describe('the counters of a chaos run', () => {
  const page = (count: number, gauge: number) =>
    readCounters(
      [
        '# TYPE a_total counter',
        `a_total{worker="0"} ${count}`,
        '# TYPE b gauge',
        `b ${gauge}`,
        '# TYPE c_seconds histogram',
        `c_seconds_bucket{le="+Inf"} ${count}`,
        `c_seconds_count ${count}`,
      ].join('\n'),
    );

  it('may rise, and gauges may fall', () => {
    expect(fallen(page(1, 9), page(2, 8))).toEqual([]);
  });

  it('are found where they fall or vanish', () => {
    expect(fallen(page(2, 1), page(1, 1)).map(({ series }) => series)).toEqual([
      'a_total{worker="0"}',
      'c_seconds_bucket{le="+Inf"}',
      'c_seconds_count',
    ]);
    expect(fallen(page(2, 1), new Map())).toHaveLength(3);
  });
});
