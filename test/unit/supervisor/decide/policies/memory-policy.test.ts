import { describe, expect, it } from 'vitest';
import { judgeMemory } from '../../../../../src/supervisor/decide/policies/memory.policy.js';

describe('a worker that holds', () => {
  it.each([
    [0, 200, 400, 'fine'],
    [200, 200, 400, 'fine'],
    [201, 200, 400, 'replace'],
    [400, 200, 400, 'replace'],
    [401, 200, 400, 'kill'],
    [201, 200, Infinity, 'replace'],
    [1e15, 200, Infinity, 'replace'],
    [400, Infinity, 400, 'fine'],
    [401, Infinity, 400, 'kill'],
    [1e15, Infinity, Infinity, 'fine'],
  ])('%d with a soft limit of %d and a hard one of %d: %s', (bytes, soft, hard, verdict) => {
    expect(judgeMemory(bytes, { softLimitBytes: soft, hardLimitBytes: hard })).toBe(verdict);
  });
});
