import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { vi } from 'vitest';
import type { Client } from '../../../src/tools/dashboard/cluster-feed.js';
import { clusterReport, type ClusterStatus } from '../../../src/control/cluster-status.js';
import { temporaryDirectory } from '../../support/temporary-directory.js';
import { SNAPSHOT } from './fake-relay.js';

export const STATUS: ClusterStatus = {
  name: 'shop',
  pid: 4711,
  version: '1.0.0',
  node: '24.0.0',
  startedAt: '2026-01-01T00:00:00.000Z',
  options: { port: 0, host: null, admin: null },
  cluster: clusterReport(SNAPSHOT),
  primary: null,
};

/** The answer to a request for a profile, which is in a file. */
export function profileFile(profile: unknown): { readonly file: string } {
  const file = join(temporaryDirectory(), 'a.methodprofile');
  writeFileSync(file, JSON.stringify(profile));
  return { file };
}

/** A cluster as the command line's client would show it. */
export class FakeControlClient implements Client {
  readonly post = vi.fn(async (_path: string, _body?: object) => ({})) as unknown as Client['post'];

  /** @param status the answer, or the error of a primary that does not answer. */
  constructor(public status: ClusterStatus | Error = STATUS) {}

  async get<T>(): Promise<T> {
    if (this.status instanceof Error) throw this.status;
    return this.status as T;
  }
}
