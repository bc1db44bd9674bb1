/** What is known of terminus 11. */
export const TERMINUS_11 = { knowsDegraded: false };

/** And of terminus 12. */
export const TERMINUS_12 = { knowsDegraded: true };
