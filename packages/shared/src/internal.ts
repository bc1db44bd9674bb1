/** `@nestjs-cluster/socket.io` uses this. No other package may rely on it. */
export { type ChannelMember, HubChannels } from './client/hub-channels.js';
export type { HubClient } from './client/hub-client.js';
export { hubOf } from './client/hub-of-process.js';
