import { describe, expect, it } from 'vitest';
import { newOwner, newSessionId, ownerOf } from '../../src/affinity/session-id.js';

describe('a session id', () => {
  it('tells its owner', () => {
    const owner = newOwner(12);
    expect(owner).toMatch(/^12-[\da-f]{8}$/);
    expect(ownerOf(newSessionId(owner))).toBe(owner);
    expect(newSessionId(owner)).not.toBe(newSessionId(owner));
  });

  const tail = 'a'.repeat(20);
  it.each([
    undefined,
    ['0-00000000.' + tail],
    'a'.repeat(20),
    `../0-00000000.${tail}`,
    `0-00000000/x.${tail}`,
    `0-0000000g.${tail}`,
    `0-00000000.${tail}a`,
    `0-00000000.${tail}\n`,
    `00000-00000000.${tail}`,
    `-1-00000000.${tail}`,
  ])('is none: %j', (sid) => {
    expect(ownerOf(sid)).toBeUndefined();
  });
});
