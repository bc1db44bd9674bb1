import { keyOf } from '../../src/decide/step.js';
import type { Effect } from '../../src/decide/effect.js';
import type { ClusterEvent } from '../../src/decide/cluster-event.js';
import { isRoutine } from './life.js';
import type { Observation } from './world.js';

/** A line for each event, with the simulated time. Routine events without effects are left out. */
export class Diary {
  readonly lines: string[] = [];

  note(step: Observation): void {
    const effects = step.effects.filter(isTold).map(describeEffect);
    if (isRoutine(step) && effects.length === 0) return;
    const time = (step.world.clock.now / 1_000).toFixed(3).padStart(9);
    const what = describeEvent(step.event, step);
    this.lines.push(`${time} s  ${what}${effects.length > 0 ? ` -> ${effects.join(', ')}` : ''}`);
  }
}

function describeEvent(event: ClusterEvent, { before }: Observation): string {
  switch (event.type) {
    case 'worker': {
      const { type, ...more } = event.event;
      const slot = before.workers.get(event.worker)?.slot;
      const where = slot === undefined ? 'gone' : `slot ${slot}`;
      return `worker ${event.worker} (${where}): ${type}${inBrief(more)}`;
    }
    case 'due':
      return `time is up: ${keyOf(event.timer)}`;
    case 'reload':
      return `reload, asked by ${requester(event)}`;
    case 'program-found':
      return event.program instanceof Error ? 'the program is not there' : 'the program is there';
    case 'scale':
      return `scale to ${event.workers}${event.error ? ' (refused)' : ''}, asked by ${requester(event)}`;
    case 'restart':
      return `restart of slot ${event.slot}, asked by ${requester(event)}`;
    case 'stop':
      return `stop by ${event.signal?.name ?? 'a call'}`;
    case 'begin':
    case 'heartbeat-due':
    case 'upkeep-due':
    case 'acceptors-closed':
      return event.type;
  }
}

/** Whether the diary shows the effect. Pings, leases and timers are left out: they are too many. */
function isTold(effect: Effect): boolean {
  if (effect.type === 'arm' || effect.type === 'disarm' || effect.type === 'gone') return false;
  return effect.type !== 'send' || !['ping', 'lead'].includes(effect.message.type);
}

function describeEffect(effect: Effect): string {
  switch (effect.type) {
    case 'fork':
      return `fork ${effect.worker} for slot ${effect.slot}`;
    case 'send':
      return `send ${effect.message.type} to ${effect.worker}`;
    case 'force':
      return `force ${effect.worker}`;
    case 'kill':
      return `${effect.signal} to ${effect.worker}`;
    case 'emit': {
      const about = 'worker' in effect.event ? ` ${effect.event.worker}` : '';
      return `${effect.name}${about}`;
    }
    case 'find-program':
      return effect.earlier === undefined ? effect.type : `find gen=${effect.earlier.generation}`;
    case 'answer': {
      const { type, ...more } = effect.answer;
      const outcome = 'result' in more ? ` (${more.result.outcome})` : '';
      return `answer ${requester(effect)}: ${type}${outcome}`;
    }
    case 'joined':
    case 'abandon':
      return `${effect.type} ${effect.worker}`;
    case 'end':
      return `end with ${effect.exitCode}`;
    case 'arm':
    case 'disarm':
    case 'gone':
    case 'serving':
    case 'close-sockets':
    case 'close-acceptors':
      return effect.type;
  }
}

function requester({ requester: { by, id } }: { requester: { by: string; id: number } }): string {
  return `${by} ${id}`;
}

function inBrief(more: object): string {
  const entries = Object.entries(more).filter(([key]) => BRIEF.has(key));
  if (entries.length === 0) return '';
  return ` ${entries.map(([key, value]) => `${key}=${brief(value)}`).join(' ')}`;
}

function brief(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  const { code, signal, message } = value as Record<string, unknown>;
  return String(message ?? signal ?? code);
}

const BRIEF = new Set(['exit', 'error', 'abort', 'healthy', 'closed', 'forMs', 'version', 'seq']);
