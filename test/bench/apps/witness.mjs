// Does nothing while other processes work. If its event loop is late, the machine is the cause.
// Reports that delay on PORT.
import { serveDelay } from './shared/serve-delay.mjs';

serveDelay(Number(process.env.PORT));
