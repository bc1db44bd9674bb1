import { loadTest } from 'loadtest';

const { port, path, ...options } = JSON.parse(process.argv[2]);
// oxlint-disable-next-line typescript/await-thenable -- it is typed as a plain function
const result = await loadTest({ url: `http://127.0.0.1:${port}${path}`, ...options });
console.log(JSON.stringify(result));
process.exit();
