import { NODE } from './cluster-process.js';
import { sensitiveNodes } from './installed-nodes.js';
import { prepareFixtures } from './quick-packages.mjs';

/** Tests run against the built package. */
export default function setup(): Promise<void> {
  return prepareFixtures([NODE, ...sensitiveNodes().values()]);
}
