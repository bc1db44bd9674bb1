/** A summary is read at a glance. */
export const MAX_FUNCTIONS = 5;

/** Usually the callers are the service and the controller. */
export const MAX_CALLERS = 3;
