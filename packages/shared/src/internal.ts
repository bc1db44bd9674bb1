/** What `@nestjs-cluster/socket.io` uses of this package. No other package may rely on it. */
export { hubOf } from './client/hub-of-process.js';
export { type ChannelMember, HubChannels } from './client/hub-channels.js';
export { decodeJson, encodeJson } from './client/json-payload.js';
