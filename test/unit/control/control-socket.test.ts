import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  appName,
  claimDirectory,
  cleanName,
  defaultSocketPath,
  MAX_PATH_BYTES,
  ownTemporaryDirectory,
  problemOfDirectory,
} from '../../../src/contract/files/control-address.js';
import { listeningSockets, parseSocketName } from '../../../src/contract/files/sockets.js';
import { resolveOptions } from '../../../src/contract/options/resolve.js';
import { ControlSocket } from '../../../src/control/control-socket.js';
import { eventually } from '../../support/eventually.js';
import { temporaryDirectory } from '../../support/temporary-directory.js';

/** A pid that is free on every Linux: the largest pid is 4194304. */
const DEAD = 4_194_305;

/** Opens the control socket of a primary that gets no requests. Default path: in XDG_RUNTIME_DIR. */
async function open(path?: string) {
  const warnings: string[] = [];
  const socket = await ControlSocket.open(
    {} as never,
    resolveOptions({ name: 'shop', control: { path } }, {}),
    (message) => void warnings.push(message),
  );
  onTestFinished(() => socket.end(0));
  return { socket, warnings };
}

/** A server of another process at a path. */
async function listenAt(path: string, onConnection?: (socket: Socket) => void): Promise<Server> {
  const server = createServer(onConnection).listen(path);
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return server;
}

/** A socket without a listening process, as a killed primary leaves it. */
async function leaveStale(path: string): Promise<void> {
  const server = await listenAt(`${path}.x`);
  linkSync(`${path}.x`, path);
  await new Promise((resolve) => void server.close(resolve));
}

const mode = (path: string): number => lstatSync(path).mode & 0o777;

describe('the control socket', () => {
  it('does not end the primary if there is no free descriptor for a connection', async () => {
    const listening = vi.spyOn(Server.prototype, 'listen');
    await open(join(temporaryDirectory(), 'a.sock'));
    const [server] = listening.mock.contexts as Server[];
    // Node emits this if accept() fails.
    expect(() => server!.emit('error', new Error('accept EMFILE'))).not.toThrow();
  });

  it('belongs to its owner alone from the first moment on, also with a umask of 0', async () => {
    const directory = join(temporaryDirectory(), 'own');
    const before = process.umask(0);
    const seen: number[] = [];
    // oxlint-disable-next-line typescript/unbound-method -- applied to its server
    const { listen } = Server.prototype;
    vi.spyOn(Server.prototype, 'listen').mockImplementation(function (
      this: Server,
      ...args: unknown[]
    ) {
      listen.apply(this, args as never);
      // The socket exists now, and its mode was not changed yet.
      seen.push(mode(String(args[0])));
      return this;
    } as never);
    try {
      claimDirectory(directory);
      seen.push(mode(directory));
      await open(join(directory, 'a.sock'));
      expect(process.umask()).toBe(0);
    } finally {
      process.umask(before);
    }
    expect(seen).toEqual([0o700, 0o600]);
    expect(mode(join(directory, 'a.sock'))).toBe(0o600);
  });

  it('replaces a socket without a listening process, and no other file', async () => {
    const directory = temporaryDirectory();
    const path = join(directory, 'a.sock');
    await leaveStale(path);
    const { socket, warnings } = await open(path);
    expect(warnings).toEqual([]);
    expect((await open(path)).warnings).toEqual([
      `no control socket: another process is listening on ${path}; use another path; retrying every 5 s; control: false disables the socket`,
    ]);
    writeFileSync(join(directory, 'file'), 'precious');
    symlinkSync(path, join(directory, 'link'));
    for (const name of ['file', 'link']) {
      expect((await open(join(directory, name))).warnings).toEqual([
        expect.stringContaining('exists but is not a socket of this user; remove it'),
      ]);
    }
    expect(readdirSync(directory).toSorted()).toEqual(['a.sock', 'file', 'link']);
    await socket.end(0);
    expect(existsSync(path)).toBe(false);
  });

  it('is not created where another user could replace it', async () => {
    const directory = join(temporaryDirectory(), 'open');
    mkdirSync(directory);
    for (const each of [0o777, 0o770]) {
      chmodSync(directory, each);
      expect((await open(join(directory, 'a.sock'))).warnings).toEqual([
        expect.stringContaining('open is writable by other users'),
      ]);
      expect(() => claimDirectory(join(directory, 'own'))).toThrow('is writable by other users');
    }
    chmodSync(directory, 0o1777);
    expect((await open(join(directory, 'a.sock'))).warnings).toEqual([]);
  });

  it('removes the sockets of killed primaries at its start, and leaves others alone', async () => {
    vi.stubEnv('XDG_RUNTIME_DIR', temporaryDirectory());
    const directory = join(process.env['XDG_RUNTIME_DIR']!, 'nestjs-cluster');
    mkdirSync(directory, { mode: 0o700 });
    const [dead, live] = [`gone.${DEAD}.sock`, `live.${process.ppid}.sock`];
    let connected = 0;
    await leaveStale(join(directory, dead));
    await listenAt(join(directory, live), () => (connected += 1));
    await open();
    await eventually('its removal', () => !existsSync(join(directory, dead)));
    expect(readdirSync(directory).toSorted()).toEqual(
      [live, `shop.${process.pid}.sock`].toSorted(),
    );
    expect(connected).toBe(0);
  });

  it('is never taken for a port if its path is a number', async () => {
    const before = process.cwd();
    process.chdir(temporaryDirectory());
    onTestFinished(() => process.chdir(before));
    const { socket } = await open('3000');
    expect(lstatSync('3000').isSocket()).toBe(true);
    await socket.end(0);
  });
});

it('only sockets with a listening process are found, and stale ones are removed', async () => {
  const directory = temporaryDirectory();
  const [dead, busy] = [`shop.${DEAD}.sock`, `shop.${process.pid}.sock`];
  await leaveStale(join(directory, dead));
  await leaveStale(join(directory, busy)); // its primary is about to listen
  writeFileSync(join(directory, `notes.${DEAD}.sock`), '');
  await listenAt(join(directory, 'live.1.sock'));
  const found = await listeningSockets(directory);
  expect(found).toEqual([{ name: 'live', pid: 1, path: join(directory, 'live.1.sock') }]);
  expect(readdirSync(directory).toSorted()).toEqual(
    ['live.1.sock', `notes.${DEAD}.sock`, busy].toSorted(),
  );
});

describe('the directory of control sockets', () => {
  it('is refused if it is a link or a file, or if other users can access it', () => {
    const directory = temporaryDirectory();
    const [own, link, file, wide] = ['own', 'link', 'file', 'wide'].map((each) =>
      join(directory, each),
    );
    claimDirectory(own!);
    claimDirectory(own!);
    symlinkSync(own!, link!);
    writeFileSync(file!, '');
    mkdirSync(wide!);
    chmodSync(wide!, 0o750);
    expect(() => claimDirectory(link!)).toThrow('is a link or a file, not a directory');
    expect(() => claimDirectory(file!)).toThrow('is a link or a file, not a directory');
    expect(() => claimDirectory(wide!)).toThrow('is open to other users; chmod 700 it');
    const stats = lstatSync(own!);
    expect(problemOfDirectory(stats, stats.uid + 1)).toBe(
      `belongs to another user (uid ${stats.uid}); remove it`,
    );
  });

  it('is in XDG_RUNTIME_DIR only if that directory belongs to this user', () => {
    const own = temporaryDirectory();
    const at = (runtime?: string) => defaultSocketPath('shop', 7, { XDG_RUNTIME_DIR: runtime });
    expect(at(own)).toBe(join(own, 'nestjs-cluster/shop.7.sock'));
    for (const runtime of [join(own, 'missing'), 'relative', '.', undefined]) {
      expect(at(runtime)).toBe(join(ownTemporaryDirectory(), 'shop.7.sock'));
    }
  });

  it('leaves room for the name of the socket', () => {
    const long = join(temporaryDirectory(), 'x'.repeat(40));
    mkdirSync(long);
    const path = defaultSocketPath('y'.repeat(40), 4_194_304, { XDG_RUNTIME_DIR: long });
    expect(Buffer.byteLength(path)).toBeLessThanOrEqual(MAX_PATH_BYTES);
    expect(parseSocketName(path)?.pid).toBe(4_194_304);
  });
});

describe('the name of a cluster', () => {
  it.each([
    ['@acme/shop', 'acme-shop'],
    ['../../etc/passwd', 'etc-passwd'],
    ['a\u001b[2J\r\nb', 'a-2J-b'],
    ['x'.repeat(300), 'x'.repeat(40)],
    ['日本', ''],
  ])('of %j is %j', (name, cleaned) => {
    expect(cleanName(name)).toBe(cleaned);
  });

  it('is the name in the nearest package.json that has one, also under pm2', () => {
    const directory = temporaryDirectory();
    const write = (path: string, text: string) => {
      mkdirSync(join(directory, path), { recursive: true });
      writeFileSync(join(directory, path, 'package.json'), text);
    };
    write('.', '{ "name": "@acme/shop" }');
    write('dist', '{ "type": "module" }');
    write('dist/bad', 'no json');
    write('dist/odd', '{ "name": { "toString": 1 } }');
    for (const path of ['main.js', 'dist/main.js', 'dist/bad/main.js', 'dist/odd/main.js']) {
      expect(appName(join(directory, path))).toBe('acme-shop');
    }
    vi.stubEnv('pm_exec_path', join(directory, 'dist/main.js'));
    expect(appName('/usr/lib/node_modules/pm2/lib/ProcessContainerFork.js')).toBe('acme-shop');
    expect(appName('/srv/other/main.js')).toBe('other');
  });
});

describe('the checks of the socket', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  });

  /** Runs checks until the condition is met. */
  const checkUntil = (what: string, isMet: () => boolean) =>
    eventually(
      what,
      async () => {
        await vi.advanceTimersByTimeAsync(5_000);
        return isMet();
      },
      (is) => is,
    );

  it('give a fixed path to a second primary once the first has ended', async () => {
    const path = join(temporaryDirectory(), 'shop.sock');
    const first = await open(path);
    const second = await open(path);
    expect(second.warnings).toEqual([expect.stringContaining('another process is listening on')]);

    await first.socket.end(0);
    await checkUntil('the second', () => second.warnings.length === 2);
    expect(second.warnings[1]).toBe(`the control socket is available again: ${path}`);
    expect(first.warnings).toEqual([]);
  });

  it('create a removed socket again, and warn once while its directory is missing', async () => {
    const directory = join(temporaryDirectory(), 'own');
    mkdirSync(directory, { mode: 0o700 });
    const path = join(directory, 'shop.sock');
    const { socket, warnings } = await open(path);
    unlinkSync(path);
    await checkUntil('the socket', () => existsSync(path));
    expect(warnings).toEqual([]);
    rmSync(directory, { recursive: true });
    await vi.advanceTimersByTimeAsync(20_000);
    expect(warnings).toEqual([expect.stringMatching(/^no control socket: ENOENT/)]);
    mkdirSync(directory, { mode: 0o700 });
    await checkUntil('a message', () => warnings.length === 2);
    expect(warnings[1]).toBe(`the control socket is available again: ${path}`);
    await socket.end(0);
    expect(existsSync(path)).toBe(false);
  });

  it.each([undefined, 'own.sock'])(
    'warn once if other users can write to the directory: path %s',
    async (file) => {
      const runtime = temporaryDirectory();
      vi.stubEnv('XDG_RUNTIME_DIR', runtime);
      const directory = join(runtime, 'nestjs-cluster');
      mkdirSync(directory, { mode: 0o700 });
      const { warnings } = await open(file && join(directory, file));
      await vi.advanceTimersByTimeAsync(5_000);
      expect(warnings).toEqual([]);

      chmodSync(directory, 0o777);
      await vi.advanceTimersByTimeAsync(15_000);
      expect(warnings).toEqual([
        expect.stringMatching(
          /^the control socket is not safe: \S+\/nestjs-cluster is (open to other users; chmod 700 it|writable by other users)/,
        ),
      ]);
    },
  );
});
