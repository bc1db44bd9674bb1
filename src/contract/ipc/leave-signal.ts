/** The usual signal to end a program. The app's shutdown hooks get it if no signal was sent. */
export const LEAVE_SIGNAL = 'SIGTERM';
