/** How long a worker waits for the app's `collect()` functions, which all run at the same time. */
export declare const READ_TIMEOUT_MS = 250;
/** How long the primary waits for the metrics of workers. */
export declare const COLLECTION_TIMEOUT_MS = 500;
/** How long a worker waits for the metrics of all workers. */
export declare const SCRAPE_TIMEOUT_MS = 900;
/**
 * How long the admin listener waits for the metrics of all workers. On a machine without a free
 * core the primary may need several times its 500 ms, and a late page is better than none.
 */
export declare const ADMIN_SCRAPE_TIMEOUT_MS = 5000;
