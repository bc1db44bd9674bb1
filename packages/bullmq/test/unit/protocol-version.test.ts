import { expect, it } from 'vitest';
import { documentedProtocolVersion } from '../../../../test/support/documents.js';
import { VERSION } from '../../src/payload.js';

it('has the version of the protocol that docs/compatibility.md gives', () => {
  expect(VERSION).toBe(documentedProtocolVersion());
});
