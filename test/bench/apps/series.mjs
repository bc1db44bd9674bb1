// The sample app with 5,000 series of its own in each worker.
import { Counter } from 'prom-client';
import '../../../sample-app/dist/main.js';

const SERIES = 5_000;
const counter = new Counter({
  name: 'orders_total',
  help: 'Many series',
  labelNames: ['shop', 'outcome'],
});
for (let i = 0; i < SERIES; i++)
  counter.inc({ shop: `shop-${i >> 1}`, outcome: i % 2 ? 'sold' : 'returned' });
