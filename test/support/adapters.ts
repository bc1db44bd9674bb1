import { execFileSync } from 'node:child_process';
import { NODE } from './cluster-process.js';

/** The version of {@link NODE}, and its major version. */
export const NODE_VERSION = execFileSync(NODE, ['-p', 'process.versions.node'], {
  encoding: 'utf8',
}).trim();
const [MAJOR, MINOR] = NODE_VERSION.split('.').map(Number) as [number, number];
export const NODE_MAJOR = MAJOR;

/** Node 22.12 is the first that passes SO_REUSEPORT on to libuv. */
export const HAS_REUSE_PORT =
  process.platform === 'linux' && (MAJOR > 22 || (MAJOR === 22 && MINOR >= 12));

const adapters = ['express', 'fastify'] as const;

/**
 * Express and Fastify, or Fastify and Express from Node 22 on. A test of what holds on both takes
 * one of them: CI runs it on two Nodes, and so on both.
 */
export const [ONE_ADAPTER, OTHER_ADAPTER] = NODE_MAJOR >= 22 ? adapters.toReversed() : adapters;

/** The fixture on Nest 12, or on Nest 11 from Node 22 on, for what costs much: in the same way. */
export const ONE_PROGRAM = NODE_MAJOR >= 22 ? 'nest11' : 'app';
