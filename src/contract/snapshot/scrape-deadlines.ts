/*
 * The deadlines of a scrape, each inside the one before it:
 *
 *     the scraper                                         1,000 ms, as promised
 *     └─ a worker waits for its primary                     900 ms
 *        ├─ first it reads its own metrics                  250 ms
 *        └─ then the primary waits for the other workers    500 ms
 *           └─ each reads its own metrics                   250 ms
 *
 * If metrics are late, the last ones that the worker sent are used.
 */

/** How long a worker waits for a `collect()` of the app; all of them run at once. */
export const READ_TIMEOUT_MS = 250;

/** How long the primary waits for the metrics of workers. */
export const COLLECTION_TIMEOUT_MS = 500;

/** How long a worker waits for the metrics of all. */
export const SCRAPE_TIMEOUT_MS = 900;

/**
 * How long the admin listener waits for them. On a machine without a core to spare the primary takes
 * a multiple of its 500 ms: a late page is better than none.
 */
export const ADMIN_SCRAPE_TIMEOUT_MS = 5_000;
