import * as nest12 from '@nestjs/microservices';
import { createRequire } from 'node:module';

/** @nestjs/microservices of each Nest that is supported. */
export const NEST_MICROSERVICES: readonly {
  readonly nest: number;
  readonly microservices: typeof nest12;
}[] = [
  { nest: 12, microservices: nest12 },
  {
    nest: 11,
    microservices: createRequire(new URL('../fixtures/nest-11/package.json', import.meta.url))(
      '@nestjs/microservices',
    ) as typeof nest12,
  },
];
