import { bootstrap } from 'nestjs-cluster/bootstrap';
import { environment } from './environment.js';

// The app is imported in the workers alone: the primary never loads Nest.
await bootstrap(async () => {
  const { createApp } = await import('./create-app.js');
  return createApp();
}, environment.options);
