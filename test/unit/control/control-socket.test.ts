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
import { createServer, Server } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { appName, mainScript } from '../../../src/contract/files/app-name.js';
import {
  claimDirectory,
  cleanName,
  controlDirectories,
  defaultSocketPath,
  MAX_PATH_BYTES,
  parseSocketName,
  problemOfDirectory,
} from '../../../src/contract/files/control-address.js';
import type { Controlled } from '../../../src/control/controlled-cluster.js';
import { Control } from '../../../src/control/open-control.js';
import { ControlSocket } from '../../../src/control/control-socket.js';
import {
  listeningSockets,
  probe,
  removeStaleSockets,
} from '../../../src/contract/files/stale-sockets.js';
import { resolveOptions } from '../../../src/contract/options/index.js';
import { eventually } from '../../support/eventually.js';
import { temporaryDirectory } from '../../support/temporary-directory.js';

async function open(path: string): Promise<ControlSocket> {
  const socket = await ControlSocket.open(path, (client) => client.destroy());
  onTestFinished(() => socket.remove());
  return socket;
}

/** A socket on which nobody listens any more, as one that was killed leaves it. */
async function leaveStale(path: string): Promise<void> {
  const beside = `${path}.x`;
  const server = createServer().listen(beside);
  await new Promise((resolve) => void server.once('listening', resolve));
  linkSync(beside, path);
  unlinkSync(beside);
  await new Promise((resolve) => void server.close(resolve));
}

const mode = (path: string): number => lstatSync(path).mode & 0o777;

describe('the control socket', () => {
  it('is its owner’s alone from the first moment on, also with a umask of 0', async () => {
    const directory = join(temporaryDirectory(), 'own');
    const before = process.umask(0);
    const seen: number[] = [];
    // oxlint-disable-next-line typescript/unbound-method -- applied to its server
    const { listen } = Server.prototype;
    const spy = vi.spyOn(Server.prototype, 'listen').mockImplementation(function (
      this: Server,
      ...args: unknown[]
    ) {
      listen.apply(this, args as never);
      // It is there by now, and nobody has touched its mode yet.
      seen.push(mode(String(args[0])));
      return this;
    } as never);
    try {
      claimDirectory(directory);
      seen.push(mode(directory));
      await open(join(directory, 'a.sock'));
      expect(process.umask()).toBe(0);
    } finally {
      spy.mockRestore();
      process.umask(before);
    }
    expect(seen).toEqual([0o700, 0o600]);
    expect(mode(join(directory, 'a.sock'))).toBe(0o600);
    expect(readdirSync(directory)).toEqual(['a.sock']);
  });

  it('takes the place of a socket on which nobody answers, and of no other', async () => {
    const directory = temporaryDirectory();
    const path = join(directory, 'a.sock');
    await leaveStale(path);
    const first = await open(path);
    await expect(open(path)).rejects.toThrow('another process listens on');
    writeFileSync(join(directory, 'file'), 'precious');
    symlinkSync(path, join(directory, 'link'));
    for (const name of ['file', 'link']) {
      await expect(open(join(directory, name))).rejects.toThrow('is not a socket; remove it');
    }
    expect(readdirSync(directory).toSorted()).toEqual(['a.sock', 'file', 'link']);
    first.remove();
    expect(existsSync(path)).toBe(false);
  });

  it('removes at the end only what it has made', async () => {
    const path = join(temporaryDirectory(), 'a.sock');
    const first = await open(path);
    unlinkSync(path);
    await open(path);
    first.remove();
    expect(lstatSync(path).isSocket()).toBe(true);
  });

  it('says of a path that is too long what it is', async () => {
    const path = join(temporaryDirectory(), 'x'.repeat(MAX_PATH_BYTES));
    await expect(open(path)).rejects.toThrow(/is too long for a unix socket \(\d+ bytes, at most/);
  });

  it('is not put where everybody may put something else in its place', async () => {
    const directory = join(temporaryDirectory(), 'open');
    mkdirSync(directory);
    chmodSync(directory, 0o777);
    await expect(open(join(directory, 'a.sock'))).rejects.toThrow('is writable by everybody');
    expect(() => claimDirectory(join(directory, 'own'))).toThrow('is writable by everybody');
    chmodSync(directory, 0o770);
    await expect(open(join(directory, 'a.sock'))).rejects.toThrow('is writable by its group');
    chmodSync(directory, 0o1777);
    await open(join(directory, 'a.sock'));
  });

  it('is removed by the next one of its directory, if its primary was killed', async () => {
    const directory = temporaryDirectory();
    const [dead, busy] = ['shop.4194305.sock', `shop.${process.pid}.sock`];
    await leaveStale(join(directory, dead));
    await leaveStale(join(directory, busy)); // its primary is about to listen
    writeFileSync(join(directory, 'notes.4194305.sock'), '');
    await open(join(directory, 'live.1.sock'));
    const found = await listeningSockets(directory);
    expect(found).toEqual([{ name: 'live', pid: 1, path: join(directory, 'live.1.sock') }]);
    expect(readdirSync(directory).toSorted()).toEqual(
      ['live.1.sock', 'notes.4194305.sock', busy].toSorted(),
    );
  });

  it('is left alone by the start of another cluster, which removes stale ones', async () => {
    const directory = temporaryDirectory();
    let connected = 0;
    const live = `live.${process.pid}.sock`;
    const socket = await ControlSocket.open(join(directory, live), (client) => {
      connected += 1;
      client.destroy();
    });
    onTestFinished(() => socket.remove());
    await leaveStale(join(directory, 'gone.4194305.sock'));
    await removeStaleSockets(directory);
    expect(readdirSync(directory)).toEqual([live]);
    // A connection comes before one that is made after it.
    await probe(join(directory, live));
    await eventually(
      'a connection',
      () => connected,
      (count) => count > 0,
    );
    expect(connected).toBe(1);
  });
});

describe('the directory of control sockets', () => {
  it('is refused where it is a link, a file, open to others or of another user', () => {
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
    expect(() => claimDirectory(link!)).toThrow('is not a directory (a link or a file)');
    expect(() => claimDirectory(file!)).toThrow('is not a directory (a link or a file)');
    expect(() => claimDirectory(wide!)).toThrow('is open to other users; chmod 700 it');
    const stats = lstatSync(own!);
    expect(problemOfDirectory(stats, stats.uid + 1)).toBe(
      `belongs to another user (uid ${stats.uid}); remove it`,
    );
  });

  it('is in XDG_RUNTIME_DIR only where that is this user’s', () => {
    const own = temporaryDirectory();
    const [, fallback] = controlDirectories({ XDG_RUNTIME_DIR: own });
    const at = (runtime: string) => defaultSocketPath('shop', 7, { XDG_RUNTIME_DIR: runtime });
    expect(at(own)).toBe(join(own, 'nestjs-cluster/shop.7.sock'));
    expect(at(join(own, 'missing'))).toBe(join(fallback!, 'shop.7.sock'));
    expect(controlDirectories({ XDG_RUNTIME_DIR: 'relative' })).toEqual([fallback]);
    expect(controlDirectories({})).toEqual([fallback]);
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

  it('is that of the nearest package.json that has one', () => {
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
  });

  it('is the name of the app that pm2 runs, not of pm2', () => {
    vi.stubEnv('pm_exec_path', '/srv/shop/dist/main.js');
    onTestFinished(() => void vi.unstubAllEnvs());
    const ofPm2 = '/usr/lib/node_modules/pm2/lib/ProcessContainerFork.js';
    expect(mainScript(ofPm2)).toBe('/srv/shop/dist/main.js');
    expect(mainScript('/srv/other/main.js')).toBe('/srv/other/main.js');
  });
});

it('a control socket in the working directory is never taken for a port', async () => {
  const before = process.cwd();
  process.chdir(temporaryDirectory());
  onTestFinished(() => process.chdir(before));
  vi.spyOn(Math, 'random').mockReturnValueOnce(0x814e74 / 2 ** 24);
  const socket = await open('control.sock');
  expect(lstatSync('control.sock').isSocket()).toBe(true);
  socket.remove();
});

/** Opens the control socket of a primary that gets no requests. */
const openControl = (path: string | undefined, warn: (message: string) => void) =>
  Control.open(
    { options: resolveOptions({ control: { path } }, {}), cluster: {} } as Controlled,
    warn,
  );

it('a control socket that was removed is made again, once there is a directory for it', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const directory = join(temporaryDirectory(), 'own');
  mkdirSync(directory, { mode: 0o700 });
  const path = join(directory, 'shop.sock');
  const warn = vi.fn();
  const control = await openControl(path, warn);
  rmSync(directory, { recursive: true });
  await vi.advanceTimersByTimeAsync(5_000);
  mkdirSync(directory, { mode: 0o700 });
  await vi.advanceTimersByTimeAsync(5_000);
  await eventually('it is there', () => existsSync(path));
  await vi.advanceTimersByTimeAsync(5_000);
  await control.end(0);
  expect(existsSync(path)).toBe(false);
  expect(warn).not.toHaveBeenCalled();
});

it.each([undefined, 'own.sock'])(
  'a directory that others may write to from now on is spoken of once: path %s',
  async (file) => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const runtime = temporaryDirectory();
    vi.stubEnv('XDG_RUNTIME_DIR', runtime);
    const directory = join(runtime, 'nestjs-cluster');
    mkdirSync(directory, { mode: 0o700 });
    const warnings: string[] = [];
    const control = await openControl(file && join(directory, file), (message) => {
      warnings.push(message);
    });
    onTestFinished(async () => {
      vi.useRealTimers();
      vi.unstubAllEnvs();
      await control.end(0);
    });
    await vi.advanceTimersByTimeAsync(5_000);
    expect(warnings).toEqual([]);

    chmodSync(directory, 0o777);
    await vi.advanceTimersByTimeAsync(15_000);
    expect(warnings).toEqual([
      expect.stringMatching(
        /^the control socket is not safe: \S+\/nestjs-cluster is (open to other users; chmod 700 it|writable by everybody)$/,
      ),
    ]);
  },
);

describe('a fixed path of the control socket', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }));
  afterEach(() => void vi.useRealTimers());

  /** A primary at a path, and what it warns of. */
  async function primaryAt(path: string) {
    const warnings: string[] = [];
    const control = await openControl(path, (message) => void warnings.push(message));
    onTestFinished(() => control.end(0));
    return { control, warnings };
  }
  /** Runs checks until one of them has done it. */
  const atNextChecks = (what: string, done: () => boolean) =>
    eventually(
      what,
      async () => {
        await vi.advanceTimersByTimeAsync(5_000);
        return done();
      },
      (is) => is,
    );

  it('is had by a second primary once the first has ended', async () => {
    const path = join(temporaryDirectory(), 'shop.sock');
    const first = await primaryAt(path);
    const second = await primaryAt(path);
    await vi.advanceTimersByTimeAsync(15_000);
    expect(second.warnings).toEqual([
      `there is no control socket: another process listens on ${path}; give another path; it is tried again every 5 s; control: false leaves it out`,
    ]);
    await first.control.end(0);
    await atNextChecks('the second has it', () => existsSync(path));
    await atNextChecks('it says so', () => second.warnings.length === 2);
    expect(second.warnings[1]).toBe(`the control socket is there now: ${path}`);
    expect(await probe(path)).toBeUndefined();
    expect(first.warnings).toEqual([]);
  });

  it('is spoken of once if its directory was removed and does not come again', async () => {
    const directory = join(temporaryDirectory(), 'own');
    mkdirSync(directory, { mode: 0o700 });
    const path = join(directory, 'shop.sock');
    const { warnings } = await primaryAt(path);
    rmSync(directory, { recursive: true });
    await vi.advanceTimersByTimeAsync(20_000);
    expect(warnings).toEqual([expect.stringMatching(/^there is no control socket: ENOENT/)]);
    mkdirSync(directory, { mode: 0o700 });
    await atNextChecks('it says that it is back', () => warnings.length === 2);
    expect(warnings[1]).toBe(`the control socket is there now: ${path}`);
    expect(await probe(path)).toBeUndefined();
  });

  it('is spoken of once if something else has taken it, and taken back once that is dead', async () => {
    const path = join(temporaryDirectory(), 'shop.sock');
    const { warnings } = await primaryAt(path);
    rmSync(path);
    const other = await open(path);
    await atNextChecks('a warning', () => warnings.length > 0);
    await vi.advanceTimersByTimeAsync(15_000);
    expect(warnings).toEqual([expect.stringContaining(`another process listens on ${path}`)]);
    other.remove();
    await atNextChecks('it has it again', () => warnings.length === 2);
    expect(await probe(path)).toBeUndefined();
  });
});
