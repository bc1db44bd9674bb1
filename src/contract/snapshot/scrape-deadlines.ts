/*
 * The deadlines of a scrape, each inside the one before it:
 *
 *     the scraper                                         1,000 ms, as promised
 *     └─ a worker waits for its primary                     900 ms
 *        ├─ first it reads its own metrics                  250 ms
 *        └─ then the primary waits for the other workers    500 ms
 *           └─ each reads its own metrics                   250 ms
 *
 * If a worker's metrics are late, the metrics that it sent last are used.
 */

/** How long a worker waits for the app's `collect()` functions, which all run at the same time. */
export const READ_TIMEOUT_MS = 250;

/** How long the primary waits for the metrics of workers. */
export const COLLECTION_TIMEOUT_MS = 500;

/** How long a worker waits for the metrics of all workers. */
export const SCRAPE_TIMEOUT_MS = 900;
