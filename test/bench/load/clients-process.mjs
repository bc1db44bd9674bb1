// Clients until SIGTERM; SIGUSR2 marks an event, from which on losses are counted as its own.
import { once } from 'node:events';
import { Clients } from './clients.mjs';

const { port } = JSON.parse(process.argv[2]);
const clients = new Clients(port);
const marks = [];
process.on('SIGUSR2', () => {
  marks.push({ lostBefore: clients.lost, inFlight: clients.inFlight });
  console.log('marked');
});
console.log('running');
await once(process, 'SIGTERM');
await clients.stop();
const ends = [...marks.slice(1).map(({ lostBefore }) => lostBefore), clients.lost];
const { requests, lost, losses } = clients;
const events = marks.map(({ lostBefore, inFlight }, i) => ({
  lost: ends[i] - lostBefore,
  inFlight,
}));
console.log(JSON.stringify({ requests, lost, losses, events }));
process.exit();
