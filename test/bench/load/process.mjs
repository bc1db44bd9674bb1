// node process.mjs CLIENT PARAMETERS: runs `measure()` of a module of this folder, in a process of its
// own: what a client costs shall not delay who measures.
const [, , client, parameters] = process.argv;
const { measure } = await import(`./${client}.mjs`);
console.log(JSON.stringify(await measure(JSON.parse(parameters))));
// It waits neither for requests that the client has given up, nor for sockets without an answer.
process.exit();
