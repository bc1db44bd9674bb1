import { createRequire } from 'node:module';
import * as common from '@nestjs/common';
import * as core from '@nestjs/core';
import * as microservices from '@nestjs/microservices';

const require11 = createRequire(new URL('../../fixtures/nest-11/package.json', import.meta.url));
const nest12 = { common, core, microservices };

/** The packages of each Nest that is supported. */
export const NESTS = [
  { nest: 'Nest 12', ...nest12 },
  {
    nest: 'Nest 11',
    get common() {
      return require11('@nestjs/common') as typeof common;
    },
    get core() {
      return require11('@nestjs/core') as typeof core;
    },
    get microservices() {
      return require11('@nestjs/microservices') as typeof microservices;
    },
  },
];
