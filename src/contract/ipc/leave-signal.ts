/** The signal by which every supervisor ends a program. An app is told this one if no signal was sent. */
export const LEAVE_SIGNAL = 'SIGTERM';
