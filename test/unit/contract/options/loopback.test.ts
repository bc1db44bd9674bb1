import { expect, it } from 'vitest';
import { isLoopback } from '../../../../src/contract/options/loopback.js';

it.each(['127.0.0.1', '127.8.0.1', '::1', 'localhost'])('%s is this machine', (host) => {
  expect(isLoopback(host)).toBe(true);
});

it.each(['10.0.0.1', 'app.internal', '::', '0.0.0.0'])('%s is not loopback', (host) => {
  expect(isLoopback(host)).toBe(false);
});
