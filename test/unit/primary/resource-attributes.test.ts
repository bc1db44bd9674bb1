import { describe, expect, it } from 'vitest';
import { resourceAttributes } from '../../../src/primary/fork-worker.js';

const of = (given?: string, host = 'web-1') =>
  resourceAttributes({ slot: 3, generation: 2 }, given, host);

describe('the resource attributes of a worker', () => {
  it('name it by host, slot and generation', () => {
    expect(of('')).toBe('service.instance.id=web-1/worker-3/gen-2');
    expect(of('', 'a,b=c')).toBe('service.instance.id=a%2Cb%3Dc/worker-3/gen-2');
  });

  it.each(['service.name=shop', 'service.name=shop,', ' service.name=shop , ,'])(
    'come after what the user has set: %j',
    (given) => {
      const attributes = of(given).split(',');
      expect(attributes.map((attribute) => attribute.trim())).toEqual([
        'service.name=shop',
        'service.instance.id=web-1/worker-3/gen-2',
      ]);
    },
  );

  it.each(['service.instance.id=mine', 'a=b, service.instance.id = mine,c=d'])(
    'are left alone where the user has named the instance: %j',
    (given) => expect(of(given)).toBe(given),
  );
});
