/** A summary is read at a glance. */
export const MAX_FUNCTIONS = 5;

/** Usually those of the service and of the controller. */
export const MAX_CALLERS = 3;
