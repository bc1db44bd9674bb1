import type { Socket } from 'node:net';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { appName, mainScript } from '../contract/files/app-name.js';
import { ControlApi } from './control-api.js';
import {
  claimDirectory,
  defaultSocketPath,
  refuseSwappable,
} from '../contract/files/control-address.js';
import { ControlServer } from './control-server.js';
import { ControlSocket } from './control-socket.js';
import { removeStaleSockets } from '../contract/files/stale-sockets.js';
import type { Controlled } from './controlled-cluster.js';

/** Maximum time to write the last answers before the process exits. */
const LAST_WORDS_MS = 200;

/** The interval of checks of the socket's file: some systems remove it at the user's logout. */
const CHECK_MS = 5_000;

export class Control {
  readonly #connections = new Set<Socket>();
  #socket: ControlSocket | undefined;
  /** Whether a warning has said that the socket could not be made. */
  #missed = false;
  /** Whether a warning has said that other users can write to the directory of the socket. */
  #exposed = false;
  readonly #api: ControlApi;
  #server: ControlServer | undefined;
  #check: NodeJS.Timeout | undefined;
  #ended = false;

  private constructor(
    private readonly controlled: Controlled,
    private readonly warn: (message: string) => void,
  ) {
    this.#api = new ControlApi(controlled);
  }

  /** Opens the socket. If that fails, the cluster runs, warns once, and tries again regularly. */
  static async open(
    { options, ...of }: Pick<Controlled, 'cluster' | 'options'>,
    warn: (message: string) => void,
  ): Promise<Control> {
    const name = options.name ?? appName(mainScript(process.argv[1]!));
    const startedAt = new Date().toISOString();
    const control = new Control({ ...of, options, name, startedAt }, warn);
    await control.#keep();
    control.#check = setInterval(() => void control.#keep(), CHECK_MS).unref();
    return control;
  }

  /** Listens if this cluster has no socket at its path. */
  async #keep(): Promise<void> {
    const before = this.#socket;
    const place = before?.atItsPath;
    if (place === 'itself') return this.#checkDirectory(before!.path);
    try {
      await this.#listen();
    } catch (error) {
      // The directory was removed, and may exist again at the next check.
      if (place === 'nothing') {
        before!.remove();
        this.#socket = undefined;
        return;
      }
      if (this.#missed) return;
      this.#missed = true;
      const { message } = error as Error;
      return this.warn(
        `there is no control socket: ${message}; it is tried again every ${CHECK_MS / 1_000} s; control: false leaves it out`,
      );
    }
    before?.remove();
    if (this.#ended) return this.#socket?.remove();
    if (this.#missed) this.warn(`the control socket is there now: ${this.#socket!.path}`);
    this.#missed = false;
  }

  /** Warns once if the mode of the directory was changed, because the commands do not use such a directory. */
  #checkDirectory(at: string): void {
    if (this.#exposed) return;
    try {
      this.#claimDirectory(at);
    } catch (error) {
      this.#exposed = true;
      this.warn(`the control socket is not safe: ${(error as Error).message}`);
    }
  }

  /** @throws Error if another user can reach the default directory, or change a directory of the app. */
  #claimDirectory(at: string): void {
    const directory = dirname(at);
    if (this.controlled.options.control?.path === undefined) claimDirectory(directory);
    else refuseSwappable(directory);
  }

  async #listen(): Promise<void> {
    const { name, options } = this.controlled;
    const path = options.control?.path;
    const at = path ?? defaultSocketPath(name, process.pid);
    this.#claimDirectory(at);
    this.#socket = await ControlSocket.open(at, (socket) => this.#take(socket));
    // Removes the sockets that killed primaries left, because nobody else removes them.
    if (path === undefined) void removeStaleSockets(dirname(at)).catch(() => {});
  }

  /** Answers the clients that wait for the end. Resolves when the clients have left, or time is up. */
  async end(exitCode: number): Promise<void> {
    this.#ended = true;
    clearInterval(this.#check);
    this.#socket?.remove();
    if (this.#connections.size === 0) return;
    const left = [...this.#connections].map(
      (socket) => new Promise((resolve) => void socket.once('close', resolve)),
    );
    this.#api.end(exitCode);
    await Promise.race([Promise.all(left), delay(LAST_WORDS_MS)]);
  }

  #take(socket: Socket): void {
    this.#connections.add(socket);
    socket.once('close', () => this.#connections.delete(socket));
    // Created at the first connection, because the server loads node:http, and most clusters never need it.
    this.#server ??= new ControlServer(this.#api.routes, this.warn);
    this.#server.take(socket);
  }
}
