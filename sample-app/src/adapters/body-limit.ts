/** Largest request body; the adapters' own defaults differ (100 KiB and 1 MiB). */
export const BODY_LIMIT_BYTES = 1024 * 1024;
