const CORE = 'src/supervisor/decide/';
const POLICIES = 'src/supervisor/decide/policies/';
const SHELL = 'src/supervisor/';

/**
 * Small faults that the simulation has to find. Each replaces the text `find`, which occurs once in
 * its file. If only rare lives show a fault, it has a `seed`, at which the tests begin.
 */
export const FAULTS = [
  ...inFile(`${CORE}shutdown.ts`, [
    {
      what: 'the shutdown leaves the timers of restarts armed',
      find: `step.disarm({ type: 'start-due', slot: index });`,
      replace: 'void index;',
    },
    {
      what: 'the shutdown forgets workers that start',
      find: `if (worker.state !== 'draining') retire(`,
      replace: `if (worker.state === 'ready') retire(`,
    },
    {
      what: 'who waits for scaling is forgotten by the shutdown',
      find: 'cancelScaling(step);',
      replace: '',
    },
    {
      what: 'who waits for a restart is forgotten by the shutdown',
      find: 'cancelRestarts(step);',
      replace: '',
    },
    {
      what: 'who waits for a reload is forgotten by the shutdown',
      find: 'cancelReload(step);',
      replace: '',
    },
    {
      what: 'nobody is told that the primary holds no socket any more',
      find: `step.send(worker, { type: 'released' });`,
      replace: 'void worker;',
    },
    {
      what: 'the second signal kills at once',
      find: 'draining: destroyConnections,',
      replace: 'draining: killAll,',
    },
    {
      what: 'the exit code is the bare number of the signal',
      find: 'exitCode: 128 + signal.number',
      replace: 'exitCode: signal.number',
    },
    {
      what: 'a cluster that gave up tells that all went well',
      find: 'begin(step, exitCode, LEAVE_SIGNAL);',
      replace: 'begin(step, 0, LEAVE_SIGNAL);',
    },
    {
      what: 'hooks are not told the signal',
      find: `'shutdown', signal)`,
      replace: `'shutdown')`,
    },
    {
      what: 'sockets stay open when the lame duck is over',
      find: `step.arm({ type: 'lame-duck-over' }, step.options.shutdown.lameDuckMs);`,
      replace: '',
    },
  ]),
  ...inFile(`${CORE}step.ts`, [
    {
      what: 'a process that SIGKILL does not end is waited for without an end',
      find: 'this.arm(overdue, EXIT_TIMEOUT_MS);',
      replace: '',
    },
  ]),
  ...inFile(`${CORE}scaling.ts`, [
    {
      what: 'a slot that is scaled away is replaced afterwards',
      find: 'replacementsWaiting.filter((each) => each.slot !== index)',
      replace: 'replacementsWaiting',
    },
    {
      what: 'who scaled is told before the others are gone',
      find: '|| !surplus',
      replace: '|| surplus',
    },
    {
      what: 'who scaled is told before the new workers are ready',
      find: `each === 'starting'`,
      replace: `each === 'ready'`,
    },
    {
      what: 'the timer of a slot that is scaled away is not cancelled',
      find: `step.disarm({ type: 'start-due', slot: index });`,
      replace: '',
    },
    {
      what: 'the candidate of a slot that is scaled away is forgotten',
      find: `loseCandidate(step, worker, 'its slot was scaled away');`,
      replace: '',
    },
    {
      what: 'scaling is not told',
      find: `step.emit('scaling', { from: desired, to: workers, reason });`,
      replace: '',
    },
    {
      what: 'who scaled is not told once a new worker has failed',
      find: 'return contendersOf(state, slot).some(',
      replace: 'return slot.worker === undefined || contendersOf(state, slot).some(',
    },
    {
      what: 'a slot that comes back has forgotten what was counted in it',
      find: '{ ...slot, release }',
      replace: 'newSlot(slot.index, release)',
    },
  ]),
  ...inFile(`${CORE}replace/reload.ts`, [
    {
      what: 'one failure of a worker that served takes a release back',
      find: 'strikes >= MAX_STRIKES',
      replace: 'strikes >= 1',
    },
    {
      what: 'failures of workers that served never take a release back',
      find: 'strikes >= MAX_STRIKES',
      replace: 'strikes > MAX_STRIKES + 100',
    },
    {
      what: 'an error that the release before had takes a release back',
      find: 'if (isOld) return false;',
      replace: '',
    },
    {
      what: 'a reload asks for each slot more than once',
      find: `if (isRequested(step.state, ({ cause }) => cause === 'reload')) return;`,
      replace: '',
    },
    {
      what: 'a second reload begins beside the first',
      find: 'if (step.state.reload === undefined) begin(',
      replace: 'begin(',
    },
    {
      what: 'slots that are added later run what was before the reload',
      find: 'step.set({ release });\n  if',
      replace: 'if',
    },
    {
      what: 'the end of a reload is not counted',
      find: 'reloads[outcome] + 1',
      replace: 'reloads[outcome]',
    },
    {
      what: 'a release that fails while it is rolled out is rolled out to the end',
      find: `underWay.outcome === 'completed' && generation === underWay.generation`,
      replace: `underWay.outcome === 'completed' && generation !== underWay.generation`,
    },
    {
      what: 'a release that fails once it is everywhere stays',
      find: '? generation === release.generation',
      replace: '? false',
    },
    {
      what: 'a release is observed for ever',
      find: `step.arm({ type: 'observation-over' }, observeMs);`,
      replace: '',
    },
    {
      what: 'a release that was taken back is started again in empty slots',
      find: 'step.setSlot(index, { release: before, failures: NO_FAILURES });',
      replace: 'void index;',
    },
    {
      what: 'the candidate of another replacement brings back what was taken back',
      find: `withdraw(step, isFailed, 'its release is taken back');`,
      replace: 'void isFailed;',
    },
    {
      what: 'the candidate of an aborted reload is forgotten',
      find: `withdraw(step, ({ cause }) => cause === 'reload', 'the reload was aborted');`,
      replace: '',
    },
    {
      what: 'the candidate of an aborted reload boots on',
      find: "withdraw(step, ({ cause }) => cause === 'reload', 'the reload was aborted');",
      replace:
        "withdraw(\n    step,\n    (each) => each.cause === 'reload' && !('phase' in each && each.phase === 'booting'),\n    'the reload was aborted',\n  );",
    },
  ]),
  ...inFile(`${CORE}transition.ts`, [
    {
      what: 'who scaled is not told once the last worker has left',
      find: '  settleScaling(step);',
      replace: '',
    },
    {
      what: 'the next replacement is not begun',
      find: '  beginNextReplacement(step);',
      replace: '',
    },
  ]),
  ...inFile(`${CORE}replace/restart-request.ts`, [
    {
      what: 'a restart that failed is told as one that was done',
      find: 'answer(step, slot, failure);',
      replace: 'answer(step, slot, null);',
    },
    {
      what: 'a worker is restarted as often as somebody asks',
      find: 'if (!isRestarting(state, slot)) {',
      replace: '{',
    },
    {
      what: 'a slot that is not there is restarted',
      find: 'if (isWanted(state, slot)) return undefined;',
      replace: 'if (isWanted(state, 0)) return undefined;',
    },
    {
      what: 'a worker that waits for its own restart is waited for',
      find: `if (requester.by === 'worker') noLongerAwait(step, { id: requester.worker });`,
      replace: '',
    },
  ]),
  ...inFile(`${CORE}replace/replacement.ts`, [
    {
      what: 'a worker that is restarted after a reload runs what was before it',
      find: `cause === 'reload' ? request.release : current`,
      replace: 'request.release ?? current',
    },
    {
      what: 'a candidate takes over because it is ill',
      find: 'if (healthy) takeOver(',
      replace: 'if (!healthy) takeOver(',
    },
    {
      what: 'the answer to a health check is taken for that to another',
      find: 'id !== candidacy.candidate',
      replace: 'id === candidacy.candidate',
    },
    {
      what: 'a candidate that failed is left alone',
      find: 'retire(step, worker, cause);',
      replace: 'void retire;',
    },
    {
      what: 'the old worker is never asked to leave',
      find: 'retire(step, predecessor, cause);',
      replace: '',
    },
    {
      what: 'a slot whose worker died while its candidate failed gets no other',
      find: ') scheduleRestart(step, slot);',
      replace: ') void 0;',
    },
    {
      what: 'a candidate of a reload takes over untried',
      find: 'if (!isNew) return',
      replace: 'if (isNew) return',
    },
    {
      what: 'a candidate takes over before its threads are proven',
      find: 'if (worker.unproven) step.set(',
      replace: 'if (!worker.unproven) step.set(',
    },
    {
      what: 'the old worker leaves as soon as its candidate starts',
      find: 'const candidate = fork(step, slot, release);',
      replace: `const candidate = fork(step, slot, release);\n  const old = step.worker(worker!);\n  if (old?.state === 'ready') retire(step, old, cause);`,
    },
    {
      what: 'the old worker leaves because its candidate failed',
      find: 'const worker = step.worker(candidate);',
      replace: 'const worker = step.worker(step.state.slots[slot]!.worker!);',
    },
  ]),
  ...inFile(`${CORE}replace/answers.ts`, [
    {
      what: 'a worker that waits for a restart is waited for, whatever replaces it',
      find: `each.for !== 'scale' && isByWorkerOf`,
      replace: `each.for === 'reload' && isByWorkerOf`,
    },
    {
      what: 'a worker that waits for a reload is waited for, whatever replaces it',
      find: `each.for !== 'scale' && isByWorkerOf`,
      replace: `each.for === 'restart' && isByWorkerOf`,
    },
    {
      what: 'who asked for a restart is told before the old worker has left',
      find: `each.for === 'restart' && each.slot === slot && isByWorkerOf(slot, each);`,
      replace: `each.for === 'restart' && each.slot === slot;`,
    },
    {
      what: 'whoever has asked is told twice',
      find: 'step.set({ pendingRequests: pendingRequests.filter((each) => !which(each)) });',
      replace: '',
    },
    {
      what: 'whoever waits for an answer is forgotten',
      find: `step.do({ type: 'answer', requester, answer });`,
      replace: 'void [requester, answer];',
    },
    {
      what: 'a worker that asked is told of the end after the first slot',
      find: 'if (slotsOfOtherReleases(step.state, reload.release).length > 0) return;',
      replace: '',
    },
  ]),
  ...inFile(`${CORE}worker/restart-slot.ts`, [
    {
      what: 'a restart is told and never comes',
      find: `step.arm({ type: 'start-due', slot: index }, delayMs);`,
      replace: '',
    },
    {
      what: 'a restart comes before the time that was told',
      find: `{ type: 'start-due', slot: index }, delayMs`,
      replace: `{ type: 'start-due', slot: index }, delayMs / 2`,
    },
    {
      what: 'a restart counts backwards',
      find: '(restarts[cause] ?? 0) + 1',
      replace: '(restarts[cause] ?? 0) - 1',
    },
    {
      what: 'it is not noted which slots restart together',
      find: '[...together, now]',
      replace: 'together',
    },
  ]),
  ...inFile(`${POLICIES}restart.policy.ts`, [
    {
      what: 'a worker that came up and failed is replaced as late as one that never came up',
      find: 'wasReady ? QUICK_START_MS : MAX_BACKOFF_MS',
      replace: 'wasReady ? MAX_BACKOFF_MS : QUICK_START_MS',
    },
    {
      what: 'failures in a row are not counted',
      find: 'inARow: stable ? 0 : history.inARow + 1,',
      replace: 'inARow: stable ? 0 : history.inARow,',
    },
    {
      what: 'a slot is never in a crash loop',
      find: 'shortLives >= MAX_FAILURES',
      replace: 'false',
    },
    {
      what: 'slots that a shared cause ended come back in one moment',
      find: 'return random * Math.min(together * BACKOFF_MS, TOGETHER_MS);',
      replace: 'return 0;',
    },
    {
      what: 'slots that fail together wait for the same time',
      find: ' * (1 + JITTER_RATIO * (2 * random - 1))',
      replace: '',
    },
  ]),
  ...inFile(`${CORE}worker/workers.ts`, [
    {
      what: 'slots that have been reloaded are taken for those that have not',
      find: '(current ?? release).generation !== generation',
      replace: '(current ?? release).generation === generation',
    },
    {
      what: 'a boot may last for ever',
      find: 'if (!mayBeDebugged) step.arm(',
      replace: 'if (mayBeDebugged) step.arm(',
    },
  ]),
  ...inFile(`${CORE}worker/dead-worker.ts`, [
    {
      what: 'the exit code tells the opposite',
      find: 'else if (!tellDeparture(',
      replace: 'else if (tellDeparture(',
    },
    {
      what: 'a cluster gives up while a candidate boots',
      find: ' || candidateOf(state, index) !== undefined;',
      replace: ' && index >= 0;',
    },
    {
      what: 'a restart is not counted',
      find: 'countRestart(step, worker.slot, cause);',
      replace: '',
    },
    {
      what: 'a failure is counted twice',
      find: 'countRestart(step, worker.slot, cause);',
      replace: 'countRestart(step, worker.slot, cause);\n  countRestart(step, worker.slot, cause);',
    },
    {
      what: 'a cluster gives up while a slot has its first worker still',
      find: 'totalOf(restarts) === 0 ||',
      replace: 'totalOf(restarts) < 0 ||',
      // Shows only if no other slot ever had a ready worker: in about one life in 4,000.
      seed: 4_200,
    },
    {
      what: 'a cluster gives up after one try a slot',
      find: 'attempts < 2 * desired',
      replace: 'attempts < desired',
    },
    {
      what: 'a cluster that has served is taken for one that never came up',
      find: 'if (everReady || attempts <',
      replace: 'if (attempts <',
    },
    {
      what: 'the end of a worker that was replaced is not noticed',
      find: 'noLongerAwait(step, worker);',
      replace: '',
    },
    {
      what: 'nobody else is asked whether threads are fit',
      find: 'askAnother(step, worker);',
      replace: '',
    },
    {
      what: 'nobody hears that a worker is gone',
      find: `step.do({ type: 'gone', worker: worker.id });`,
      replace: '',
    },
    {
      what: 'the requests that a slot aborted are those of its last worker',
      find: 'abortedRequests: abortedRequests + aborted,',
      replace: 'abortedRequests: aborted,',
    },
    {
      what: 'the failure of a candidate counts against its slot',
      find: 'if (loseCandidate(step, worker, detail) || !isWanted',
      replace: 'loseCandidate(step, worker, detail);\n  if (!isWanted',
    },
  ]),
  ...inFile(`${CORE}worker/worker-life.ts`, [
    {
      what: 'a health check may last for ever',
      find: 'ready: onCheckOverdue',
      replace: 'ready: nothing',
    },
    {
      what: 'the end of the canary time changes nothing',
      find: 'ready: endCanary',
      replace: 'ready: nothing',
    },
    {
      what: 'who does not leave in time is left alone',
      find: 'draining: killOverdue',
      replace: 'draining: nothing',
    },
    {
      what: 'who came up while it was ended is not asked to drain',
      find: '  drainAfterAll(step, worker);',
      replace: '',
    },
    {
      what: 'the time to come up runs on when a worker is ready',
      find: 'step.disarmAllOf(worker.id);',
      replace: '',
    },
    {
      what: 'a worker that ends by an error has no successor',
      find: `recover(step, failing, 'crash', inWords(error));`,
      replace: '',
    },
    {
      what: 'a worker that leaves by itself is never asked to drain',
      find: `step.armFor(worker, 'leave-due', GROUP_SIGNAL_MS);`,
      replace: '',
    },
    {
      what: 'nobody hears that a worker serves',
      find: `step.do({ type: 'joined', worker: worker.id });`,
      replace: '',
    },
    {
      what: 'who lives well is in a crash loop for ever',
      find: `step.armFor(worker, 'recovered', RECOVERY_MS);`,
      replace: '',
    },
    {
      what: 'a worker that does not come up in time is left alone',
      find: 'starting: timeOut',
      replace: 'starting: nothing',
    },
    {
      what: 'what a drain aborted is not noted',
      find: 'step.change(worker, { drain: report });',
      replace: 'void [worker, report];',
    },
    {
      what: 'the report of a block changes nothing',
      find: 'ready: onBlockOverdue',
      replace: 'ready: nothing',
    },
  ]),
  ...inFile(`${CORE}worker/liveness.ts`, [
    {
      what: 'who answers is killed, and who hangs is not',
      find: 'if (!isHung(silence',
      replace: 'if (isHung(silence',
    },
    {
      what: 'a primary that stood still judges by that time',
      find: 'if (late) grantFreshWindow(',
      replace: 'if (false) grantFreshWindow(',
    },
    {
      what: 'who hangs is given a fresh window with every round',
      find: 'if (late) grantFreshWindow(',
      replace: 'if (true) grantFreshWindow(',
    },
    {
      what: 'the answer to another ping counts',
      find: 'seq !== worker.ping.seq',
      replace: 'false',
    },
    {
      what: 'the timer of a block runs on when the block is over',
      find: `step.disarm({ type: 'block-overdue', worker: worker.id });`,
      replace: '',
    },
    {
      what: 'who answers is pinged no more',
      find: 'if (worker.ping === undefined) ping(',
      replace: 'if (worker.ping !== undefined) ping(',
    },
    {
      what: 'a block is given the whole time from its report on',
      find: 'hangTimeoutMs - report.forMs',
      replace: 'hangTimeoutMs',
    },
  ]),
  ...inFile(`${CORE}replace/upkeep.ts`, [
    {
      what: 'a replacement that failed is tried again at once',
      find: 'step.now < noReplacementBefore',
      replace: 'step.now > noReplacementBefore',
    },
    {
      what: 'a slot is replaced twice for the same reason',
      find: 'if (isRequested(step.state, (each) => each.slot === slot)) return;',
      replace: '',
    },
    {
      what: 'a worker that is too large from the start is replaced over and over',
      find: 'if (worker.bornTooLarge) postpone(step, worker, tooLarge);',
      replace: '',
    },
    {
      what: 'a worker that was just killed is replaced beside it',
      find: 'const worker = step.worker(found.id)!;',
      replace: 'const worker = found;',
    },
    {
      what: 'a worker that is too large from the start is spared anew with each look',
      find: 'worker.readyAt + MAX_BACKOFF_MS',
      replace: 'step.now + MAX_BACKOFF_MS',
    },
    {
      what: 'a worker that is too large from the start is never replaced',
      find: 'if (worker.bornTooLarge) postpone(step, worker, tooLarge);\n      replace(',
      replace: 'if (worker.bornTooLarge) postpone(step, worker, tooLarge);\n      else replace(',
    },
  ]),
  ...inFile(`${POLICIES}memory.policy.ts`, [
    {
      what: 'who is below the hard limit is killed',
      find: 'residentBytes > limits.hardLimitBytes',
      replace: 'residentBytes < limits.hardLimitBytes',
    },
  ]),
  ...inFile(`${POLICIES}heartbeat.policy.ts`, [
    {
      what: 'who is blocked is judged by its ping alone',
      find: 'Math.min(pingSentAt, blockedSince ?? Infinity)',
      replace: 'pingSentAt',
    },
  ]),
  ...inFile(`${POLICIES}recycle.policy.ts`, [
    {
      what: 'who has served little is replaced',
      find: 'worker.requests >=',
      replace: 'worker.requests <',
    },
  ]),
  ...inFile(`${CORE}worker/verification.ts`, [
    {
      what: 'a proof that threads are fit changes nothing',
      find: 'onProven(step, { id });',
      replace: 'void id;',
    },
    {
      what: 'the time to prove threads runs on after the answer',
      find: `step.disarm({ type: 'verify-overdue', worker: worker.id });`,
      replace: '',
    },
    {
      what: 'that the threads of a release are fit is forgotten',
      find: 'proven: [...proven, generation]',
      replace: 'proven',
    },
    {
      what: 'a cluster starts with each proof',
      find: 'if (everReady || served',
      replace: 'if (served',
    },
  ]),
  ...inFile(`${CORE}worker/retire.ts`, [
    {
      what: 'the timers of a worker that serves run on while it drains',
      find: 'step.disarmAllOf(worker.id);',
      replace: '',
    },
    {
      what: 'a worker that drains keeps its place',
      find: 'vacate(step, worker);',
      replace: '',
    },
    {
      what: 'a worker that drains is killed before its time',
      find: 'return lameDuckMs + drainTimeoutMs + killTimeoutMs',
      replace: 'return lameDuckMs + drainTimeoutMs',
    },
    {
      what: 'a worker that left badly is taken for one that left well',
      find: 'return problem === null;',
      replace: 'return problem !== null;',
    },
    {
      what: 'who is to leave is not asked',
      find: `step.send(worker, { type: 'drain', cause, signal });`,
      replace: '',
    },
  ]),
  ...inFile(`${CORE}leadership.ts`, [
    {
      what: 'the role is given away before the lease of a worker that drains is over',
      find: 'if (holder !== undefined && step.now < lease.until + MARGIN_MS) return;',
      replace: '',
    },
    {
      what: 'a lease is renewed that was not answered',
      find: 'if (mayLead(holder) && lease.answered) return grant(step, holder);',
      replace: 'if (mayLead(holder)) return grant(step, holder);',
    },
    {
      what: 'a worker that is blocked loses the role before its lease is over',
      find: 'const leftMs = lease.until + MARGIN_MS - step.now;',
      replace: 'const leftMs = lease.until - 2 * RENEW_MS - step.now;',
    },
    {
      what: 'a worker that was blocked never leads again',
      find: 'if (worker.lapsed) step.change(worker, { lapsed: false });',
      replace: '',
    },
    {
      what: 'who was blocked leads on',
      find: 'if (holder !== undefined) step.change(holder, { lapsed: true });',
      replace: '',
    },
    {
      what: 'the youngest worker leads',
      find: 'worker.readyAt < found.readyAt',
      replace: 'worker.readyAt > found.readyAt',
    },
    {
      what: 'a worker that asks while it leads has no lease',
      find: 'if (holder.follows && lease === undefined) grant(step, holder);',
      replace: '',
    },
    {
      what: 'a new leader repeats what the one before it may have run',
      find: 'endLease(step, lease.until);',
      replace: 'endLease(step, lease.until - 2 * RENEW_MS);',
    },
    {
      what: 'a lease that is over leaves its timer armed',
      find: `step.disarm({ type: 'lease-due' });`,
      replace: '',
    },
    {
      what: 'another leader is appointed as soon as the lease of a worker that drains is over',
      find: 'step.now < lease.until + MARGIN_MS) return;',
      replace: 'step.now < lease.until) return;',
    },
    {
      what: 'another leader is appointed as soon as the lease of a worker that is blocked is over',
      find: 'const leftMs = lease.until + MARGIN_MS - step.now;',
      replace: 'const leftMs = lease.until - step.now;',
    },
    {
      what: 'the margin behind a lease is nothing',
      find: 'MARGIN_MS = 100;',
      replace: 'MARGIN_MS = 0;',
    },
  ]),
  ...inFile(`${CORE}step.ts`, [
    {
      what: 'timers are disarmed in the state alone',
      find: `if (this.fired(timer)) this.effects.push({ type: 'disarm', timer });`,
      replace: 'this.fired(timer);',
    },
  ]),
  ...inShell('supervisor.ts', [
    {
      what: 'a process that SIGKILL did not end is not given up',
      find: `return this.#post({ type: 'process', worker: effect.worker, told });`,
      replace: 'return void told;',
    },
    {
      what: 'the shell disarms no timer',
      find: 'return this.#timers.disarm(effect.timer);',
      replace: 'return;',
    },
    {
      what: 'nobody hears that the acceptors are closed',
      find: `const closed = () => this.#post({ type: 'acceptors-closed' });`,
      replace: 'const closed = () => {};',
    },
    {
      what: 'one effect that fails ends the others of its step',
      find: 'for (const effect of effects) this.#effects.post(effect);',
      replace: 'for (const effect of effects) this.#perform(effect);',
    },
    {
      what: 'the heartbeat goes round half as often',
      find: 'every(PING_INTERVAL_MS, () => {',
      replace: 'every(4 * PING_INTERVAL_MS, () => {',
    },
  ]),
  ...inShell('timers.ts', [
    {
      what: 'a timer that is armed again leaves the one before',
      find: '    this.disarm(timer);',
      replace: '',
    },
    {
      what: 'the time of a worker goes on while the primary stands still',
      find: `if ('worker' in timer) {`,
      replace: `if (timer.type === 'none') {`,
    },
  ]),
  ...inShell('event-queue.ts', [
    {
      what: 'an event that a handler causes is handled within it',
      find: 'if (this.#handling) return;',
      replace: '',
    },
  ]),
  ...inShell('switchboard.ts', [
    {
      what: 'the switchboard keeps a heartbeat to itself',
      find: `      case 'pong':
      case 'resumed':`,
      replace: `      case 'pong':
        return undefined;
      case 'resumed':`,
    },
    {
      what: 'who asks for a restart is taken for another slot',
      find: `return { type: 'restart', slot: message.slot, reason,`,
      replace: `return { type: 'restart', slot: message.slot + 1, reason,`,
    },
  ]),
  ...inShell('processes/worker-table.ts', [
    {
      what: 'a process that has exited stays in the table',
      find: 'this.#handles.delete(id);',
      replace: '',
    },
    {
      what: 'the table forgets the state of the core',
      find: `update(state: ClusterState): void {
    this.#state = state;`,
      replace: `update(state: ClusterState): void {
    if (state.workers.size > 0) this.#state = state;`,
    },
  ]),
  ...inShell('serve/slot-counts.ts', [
    {
      what: 'the requests that a slot has answered are those of its last two workers',
      find: 'this.#gone[name] += stats?.[name] ?? 0;',
      replace: 'this.#gone[name] = stats?.[name] ?? 0;',
    },
  ]),
  ...inShell('processes/worker-handle.ts', [
    {
      what: 'a message that was read still counts as unread',
      find: 'handle as never, () => void (this.#unsent -= 1));',
      replace: 'handle as never, () => {});',
    },
  ]),
];

function inFile(file, faults) {
  return faults.map((fault) => ({ file, seed: 1, ...fault }));
}

/** Faults outside the core, which only show with the real supervisor around it. */
function inShell(file, faults) {
  return inFile(`${SHELL}${file}`, faults).map((fault) => ({ ...fault, shell: true }));
}
