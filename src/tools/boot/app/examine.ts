import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { isOurs, type WorkerMessage } from '../../../contract/ipc/index.js';
import { AppView, classOf } from '../../../observe/findings/app-view.js';
import type { Examiner } from '../../../observe/findings/finding.js';
import {
  BOOT_START,
  type BootStart,
  type HookTime,
  type Phase,
  type Recording,
  RECORDING_VARIABLE,
} from './recording.js';

type Method = (this: unknown, ...args: unknown[]) => unknown;

/** The used part of @nestjs/core, the same in Nest 11 and 12. */
interface NestCore {
  readonly NestFactory: object;
  readonly NestApplicationContext: { readonly prototype: object };
}

const start = Reflect.get(globalThis, BOOT_START) as BootStart;
const phases = { node: start.preloadMs, imports: 0, container: 0, hooks: 0, setup: 0, listen: 0 };
const hooks: HookTime[] = [];
let phase: Phase = 'imports';
let since = start.mainMs;

/** @returns the phase before. */
function enter(next: Phase): Phase {
  const before = phase;
  const now = performance.now();
  phases[before] += now - since;
  phase = next;
  since = now;
  return before;
}

/** Replaces a method by one that is a phase of its own. `after` is the next phase, by default the one before. */
function clock(owner: object, name: string, during: Phase, after?: Phase): void {
  const method = Reflect.get(owner, name) as Method;
  Reflect.set(owner, name, async function (this: object, ...args: unknown[]) {
    if (name === 'callInitHook') clockHooks(this);
    const before = enter(during);
    try {
      return await method.apply(this, args);
    } finally {
      enter(after ?? before);
    }
  });
}

function clockHooks(app: object): void {
  const { providers, controllers } = new AppView(app);
  // Providers that are aliases have the same instance.
  const instances = new Map([...providers, ...controllers].map((each) => [each.instance, each]));
  for (const [instance, { module }] of instances) {
    if (typeof instance !== 'object' || instance === null) continue;
    clockHook(instance, 'onModuleInit', module);
    clockHook(instance, 'onApplicationBootstrap', module);
  }
}

function clockHook(instance: object, hook: HookTime['hook'], module: string): void {
  const method = Reflect.get(instance, hook) as Method | undefined;
  if (typeof method !== 'function') return;
  const value = async (...args: unknown[]): Promise<unknown> => {
    const from = performance.now();
    try {
      return await method.apply(instance, args);
    } finally {
      hooks.push({ class: classOf(instance), module, hook, ms: performance.now() - from });
    }
  };
  // Does nothing for a frozen instance. Its hook runs without being measured.
  Reflect.defineProperty(instance, hook, { value, configurable: true, writable: true });
}

/** Loads the app's Nest; `undefined` if it is in a bundle. */
async function nestOf(main: string): Promise<NestCore | undefined> {
  try {
    const { href } = pathToFileURL(createRequire(main).resolve('@nestjs/core'));
    return (await import(/* webpackIgnore: true */ href)) as NestCore;
  } catch {
    return undefined;
  }
}

const nest = await nestOf(process.argv[1]!);

/** Follows the worker from the call of `bootstrap()` until it says that it is ready. */
export const startExamination: Examiner['startExamination'] = () => {
  if (nest !== undefined) {
    for (const name of ['create', 'createMicroservice', 'createApplicationContext']) {
      clock(nest.NestFactory, name, 'container', 'setup');
    }
    clock(nest.NestApplicationContext.prototype, 'callInitHook', 'hooks');
    clock(nest.NestApplicationContext.prototype, 'callBootstrapHook', 'hooks');
  }
  let recording: Recording | undefined;
  const send = process.send!.bind(process) as (...args: unknown[]) => boolean;
  process.send = (message: unknown, ...rest: unknown[]) => {
    const type = isOurs(message) ? (message as WorkerMessage).type : undefined;
    if (type === 'listen-request') enter('listen');
    if (type === 'ready') {
      enter(phase); // counts the time until now
      recording = { phases, hooks, ...start.stop() };
    }
    return send(message, ...rest);
  };
  return () => {
    writeFileSync(process.env[RECORDING_VARIABLE]!, JSON.stringify(recording));
    return [];
  };
};
