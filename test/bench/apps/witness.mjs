// Does nothing, beside processes that do: how late its event loop is, the machine is to blame for.
// It answers that on PORT.
import { serveDelay } from './shared/serve-delay.mjs';

serveDelay(Number(process.env.PORT));
