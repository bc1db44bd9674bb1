// Ends with 0 once GET /hello is answered: node ask-hello.mjs <port>. For ports of other namespaces.
import { untilHello } from '../systems/answers.mjs';

await untilHello(Number(process.argv[2]));
