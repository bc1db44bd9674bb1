import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { temporaryDirectory } from './temporary-directory.js';

/** Prints each datagram as one line. Perl, because Node has no datagram sockets of the family unix. */
const PROGRAM = `
  $| = 1;
  socket(my $s, AF_UNIX, SOCK_DGRAM, 0) or die $!;
  bind($s, pack_sockaddr_un($ARGV[0])) or die $!;
  print "bound\\n";
  while (defined recv($s, my $m, 65536, 0)) { print join("\\x1f", split(/\\n/, $m)), "\\n" }`;

/** Listens on a NOTIFY_SOCKET, as systemd does. Ends with the test. */
export class NotifyListener {
  /** The variables of each message. */
  readonly messages: string[][] = [];

  private constructor(readonly path: string) {}

  static async open(): Promise<NotifyListener> {
    const listener = new NotifyListener(join(temporaryDirectory(), 'notify'));
    const child = spawn('perl', ['-MSocket', '-e', PROGRAM, listener.path], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill());
    let rest = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop()!;
      listener.messages.push(...lines.map((line) => line.split('\x1f')));
    });
    const ended = once(child, 'exit').then(() => Promise.reject(new Error('perl has ended')));
    await Promise.race([once(child.stdout, 'data'), ended]);
    listener.messages.shift();
    return listener;
  }

  /** The states READY, RELOADING and STOPPING, in order. Each message repeats the state. */
  get states(): string[] {
    return this.messages
      .flat()
      .filter((each) => /^(READY|RELOADING|STOPPING)=1$/.test(each))
      .filter((each, index, all) => each !== all[index - 1]);
  }

  count(variable: string): number {
    return this.messages.flat().filter((each) => each === variable).length;
  }
}
