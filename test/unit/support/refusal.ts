import { expect } from 'vitest';
import { ClusterConfigurationError } from '../../../src/contract/errors/errors.js';

/** The message of the configuration error that `act` throws. */
export function refusal(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    expect(error).toBeInstanceOf(ClusterConfigurationError);
    expect(error).toMatchObject({ code: 'CLUSTER_CONFIGURATION', exitCode: 78 });
    const { message } = error as Error;
    expect(message).not.toContain('\n');
    return message;
  }
  throw new Error('nothing was refused');
}

/** `nested('a.b', 1)` is `{ a: { b: 1 } }`. */
export function nested(key: string, value: unknown): Record<string, unknown> {
  const [first, ...rest] = key.split('.');
  return { [first!]: rest.length === 0 ? value : nested(rest.join('.'), value) };
}

/** `at({ a: { b: 1 } }, 'a.b')` is `1`. */
export function at(object: unknown, key: string): unknown {
  return key.split('.').reduce((value, name) => (value as Record<string, unknown>)[name], object);
}
