import { expect, it } from 'vitest';
import { documentedProtocolVersion } from '../../../../test/support/documents.js';
import { HUB_VERSION } from '../../src/wire/protocol.js';

it('has the version of the protocol that docs/compatibility.md gives', () => {
  expect(HUB_VERSION).toBe(documentedProtocolVersion());
});
