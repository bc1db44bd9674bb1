import { probe } from './light-route.mjs';

const { port, path, seconds } = JSON.parse(process.argv[2]);
console.log(JSON.stringify(await probe(port, path, seconds)));
// Sockets whose requests were never answered.
process.exit();
