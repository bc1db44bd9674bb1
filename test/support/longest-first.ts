import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Files that take longer than the others, longest first. Vitest begins with what is large, and
 * some of these are small: at the end one of them would keep the machine waiting for it alone.
 */
const LONGEST = [
  'integration/reload',
  'thorough/offload-faults',
  'packaging/nest-11',
  'packaging/nest-12',
  'thorough/prometheus',
  'thorough/microservices',
  'integration/scale',
  'integration/drain',
  'thorough/boot',
  'thorough/drain-streams',
  'thorough/rebalance',
  'thorough/shutdown-hooks',
  'integration/crash',
  'integration/hang',
  'thorough/profiles',
  'thorough/ipc',
  'thorough/ipc-hostile',
  'thorough/round-robin',
  'thorough/rebalance-clients',
  'thorough/descriptors',
  'thorough/crash-loops',
  'thorough/consumers',
  'thorough/no-http',
  'thorough/accept-queue',
  'thorough/recycle',
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const rank = ({ moduleId }: TestSpecification): number => {
      const place = LONGEST.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
      return place === -1 ? LONGEST.length : place;
    };
    return sorted.toSorted((a, b) => rank(a) - rank(b));
  }
}
