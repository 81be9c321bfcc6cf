import { hash } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { Secret } from '../../../src/core/secret.ts';
import { toGrantRow } from '../../../src/store/rows/grant-row.ts';
import { sampleGrant } from '../../core/samples.ts';
import { LeaseInvariants } from './lease-invariants.ts';
import { ModelDatabase } from './model-database.ts';
import { CONNECTION, HUBS, type HubName, ModelHub } from './model-hub.ts';
import { ModelPortal, type RefreshRequest, settle } from './model-portal.ts';
import { isBusy, nextMoment, openRequests } from './passing-time.ts';
import type { LeaseScenario } from './scenario.ts';
import type { WorldParts } from './world-parts.ts';

/** The age of the access token when the check begins, as a part of its lifetime: it will soon be due. */
const INITIAL_AGE = 0.74;

/** Two hubs, the database and the portal in virtual time. Everything that happens is a step that a check chooses. */
export class LeaseWorld implements WorldParts {
  readonly database: ModelDatabase;
  readonly portal: ModelPortal;
  readonly hubs: Readonly<Record<HubName, ModelHub>>;
  readonly invariants: LeaseInvariants;
  readonly scenario: LeaseScenario;
  faults = 0;
  #advances = 0;
  #requests = 0;
  #rejections = 0;
  #imports = 0;
  #unpairs = 0;
  #slowAnswers = 0;
  /** False at the end of an execution, when nothing goes wrong any more. */
  #mayFail = true;

  private constructor(scenario: LeaseScenario) {
    this.scenario = scenario;
    const defects = new Set(scenario.defects ?? []);
    this.database = new ModelDatabase(defects as Set<never>);
    const { lifetime, grace, retryLostAnswer } = scenario;
    this.portal = new ModelPortal({ lifetime, grace });
    const context = { database: this.database, portal: this.portal, retryLostAnswer, defects };
    this.hubs = { A: new ModelHub('A', context), B: new ModelHub('B', context) };
    this.invariants = new LeaseInvariants(this);
    this.database.onCommit((hub, isNews) => this.#committed(hub as HubName, isNews));
  }

  /** Both hubs hold the first grant, and its refresh will soon be due. */
  static async start(scenario: LeaseScenario): Promise<LeaseWorld> {
    const world = new LeaseWorld(scenario);
    const { database, hubs } = world;
    const age = INITIAL_AGE * scenario.lifetime;
    const grant = sampleGrant({
      connection: CONNECTION,
      accessToken: new Secret('access-1'),
      refreshToken: new Secret('refresh-1'),
      lifetime: scenario.lifetime,
      portalTime: null,
      obtained: { boot: 'boot-A', uptime: hubs.A.uptime - age, wall: database.now - age },
    });
    const row = toGrantRow(grant, { seal: (_row, text) => text, open: (_row, text) => text });
    const attempt = { attempt: null, attempt_id: null, holder: null, leased_until: null };
    const first = { ...row, ...attempt, revision: 1, confirmed: true };
    database.commit(new Map([[CONNECTION, first]]), 'pairing', false);
    database.forgetCommits();
    for (const name of HUBS) await hubs[name].start();
    await turn();
    for (const name of HUBS) {
      for (const call of [...(hubs[name].run?.connections.calls ?? [])]) {
        await call.execute();
        call.answer();
      }
    }
    await turn();
    return world;
  }

  get time(): number {
    return this.database.time;
  }

  /** What may happen next; first what happens if nothing goes wrong. */
  steps(): string[] {
    const steps = HUBS.flatMap((name) => this.#stepsOf(name));
    steps.push(...HUBS.flatMap((name) => this.hubs[name].ghosts.map((_, index) => `${name} ghost ${index}`)));
    if (this.#canAdvance()) steps.push('advance');
    if (this.#mayFail) steps.push(...HUBS.flatMap((name) => this.#appliances(name)), ...this.#faults());
    return steps;
  }

  /** Makes one step, and checks the invariants. @throws InvariantBroken */
  async take(step: string): Promise<void> {
    const [who = '', what = '', number = ''] = step.split(' ');
    if (step === 'advance') this.#advance();
    else if (who === 'promote') await this.#promote(Number(what));
    else await this.#takeOf(this.hubs[who as HubName], what, Number(number));
    await turn();
    this.invariants.check();
  }

  /** From now on only what must happen happens. */
  calmDown(): void {
    this.#mayFail = false;
  }

  /** Everything that the rest of an execution depends on. */
  fingerprint(): string {
    const { maxLostCommits, faults } = this.scenario;
    const canPromote = faults.includes('promotion') && this.faults < this.scenario.maxFaults;
    const parts = [
      ...[this.time, this.faults, this.#advances, this.#requests, this.#rejections, this.#slowAnswers],
      ...[this.#imports, this.#unpairs],
      ...[this.database.fingerprint(canPromote ? maxLostCommits : 0), this.portal.fingerprint()],
      ...[this.hubs.A.fingerprint(), this.hubs.B.fingerprint(), this.invariants.fingerprint()],
    ];
    return hash('sha1', parts.join('\n'), 'base64');
  }

  #stepsOf(name: HubName): string[] {
    const hub = this.hubs[name];
    const { run } = hub;
    if (run === null) return [`${name} start`];
    const open = openRequests(this, name);
    const checked = open.find(({ state }) => state === 'checked');
    // The process stands between two instructions.
    if (checked !== undefined) return [`${name} write ${checked.number}`];
    const { calls } = run.connections;
    const steps = calls.map(({ number, result }) => `${name} ${result === null ? 'call' : 'answer'} ${number}`);
    if (run.connections.isAway && run.isLoaded) steps.push(`${name} return`);
    for (const { number, state } of open) {
      if (state === 'connecting') steps.push(`${name} send ${number}`);
      if (state === 'processed') steps.push(`${name} response ${number}`);
    }
    if (run.isLoaded && !run.isApplying && !run.connections.isAway && run.news !== 'none') steps.push(`${name} news`);
    if (hub.dueAt !== null && hub.dueAt <= this.time) steps.push(`${name} due`);
    return steps;
  }

  /** What appliances and people at a hub may do, and how late the database's answers may be. */
  #appliances(name: HubName): string[] {
    const { held, run } = this.hubs[name];
    if (run === null || !run.isLoaded) return [];
    const steps: string[] = [];
    const { maxRequests, maxRejections, maxSlowAnswers, maxImports, maxUnpairs } = this.scenario;
    const { calls } = run.connections;
    if (this.#slowAnswers < maxSlowAnswers) {
      for (const { number, result } of calls) if (result === null) steps.push(`${name} execute ${number}`);
    }
    if (openRequests(this, name).some(({ state }) => state === 'checked')) return steps;
    if (this.#imports < maxImports) steps.push(`${name} import`);
    if (held === undefined) return steps;
    if (this.#unpairs < maxUnpairs) steps.push(`${name} unpair`);
    if (this.#requests < maxRequests && held.refreshing === null && run.grants.schedule.mayRefreshOnDemand(held))
      steps.push(`${name} request`);
    if (this.#rejections < maxRejections && held.grant.accessTokenRejectedAt === null) steps.push(`${name} reject`);
    return steps;
  }

  #faults(): string[] {
    const { faults, maxFaults, maxLostCommits } = this.scenario;
    if (this.faults >= maxFaults) return [];
    const steps: string[] = [];
    for (const name of HUBS) {
      const { run } = this.hubs[name];
      if (run === null) continue;
      if (faults.includes('kill')) steps.push(`${name} kill`);
      if (faults.includes('disconnect') && !run.connections.isAway) steps.push(`${name} disconnect`);
      for (const { number, state } of openRequests(this, name)) {
        if (state === 'connecting' && faults.includes('late_write')) steps.push(`${name} check ${number}`);
        if (state === 'connecting' && faults.includes('unreachable')) steps.push(`${name} unreachable ${number}`);
        if (state === 'processed' && faults.includes('lost_answer')) steps.push(`${name} lose ${number}`);
      }
    }
    if (faults.includes('promotion')) {
      const most = Math.min(maxLostCommits, this.database.commits);
      for (let lost = 0; lost <= most; lost++) steps.push(`promote ${lost}`);
    }
    return steps;
  }

  async #takeOf(hub: ModelHub, what: string, number: number): Promise<void> {
    const call = hub.run?.connections.calls.find((one) => one.number === number);
    const request = this.portal.requests[number];
    if (what === 'execute') {
      this.#slowAnswers += 1;
      return call?.execute();
    }
    if (what === 'ghost') return hub.ghosts.splice(number, 1)[0]?.execute();
    hub.isPaused = what === 'check';
    hub.note(what, number, call?.result, request?.outcome, request?.state);
    if (what === 'start') await hub.start();
    else if (what === 'call') {
      await call?.execute();
      hub.note(call?.result);
      call?.answer();
    } else if (what === 'answer') call?.answer();
    else if (what === 'return') void hub.return();
    else if (what === 'news') void hub.applyNews();
    else if (what === 'due') hub.runPlan();
    else if (what === 'request') {
      this.#requests += 1;
      void hub.run?.grants.refresh(CONNECTION);
    } else if (what === 'reject') {
      this.#rejections += 1;
      const token = hub.held?.grant.accessToken.reveal() ?? '';
      this.invariants.rejected(hub.name, token);
      void hub.run?.grants.reportRejectedToken(CONNECTION, token);
    } else if (what === 'import') {
      this.#imports += 1;
      void hub.import().then((end) => this.invariants.imported(end));
    } else if (what === 'unpair') {
      this.#unpairs += 1;
      void hub.unpair().then((end) => this.invariants.unpaired(end));
    } else if (what === 'kill') {
      this.#fail(hub.name, 'killed');
      this.invariants.killed(hub.name);
      for (const open of openRequests(this, hub.name)) open.isSettled = true;
      await hub.kill();
    } else if (what === 'disconnect') {
      this.#fail(hub.name, 'disconnected');
      await hub.disconnect();
    } else if (request !== undefined) this.#takeOfRequest(hub, what, request);
  }

  #takeOfRequest(hub: ModelHub, what: string, request: RefreshRequest): void {
    const mayIgnore = this.scenario.defects?.includes('portal_client_ignores_deadline') === true;
    if (what === 'send' || what === 'check') {
      if (what === 'check') this.#fail(hub.name, 'paused before the write');
      if (!request.maySend() && !mayIgnore) {
        settle(request, { kind: 'not_sent', detail: 'the time in which it may be sent was over' });
      } else if (what === 'send') {
        this.#write(request);
      } else {
        request.state = 'checked';
        request.mishaps.add('late write');
      }
    } else if (what === 'write') {
      this.#write(request);
    } else if (what === 'unreachable') {
      this.faults += 1;
      settle(request, { kind: 'not_sent', detail: 'unreachable' });
    } else if (what === 'lose') {
      this.#fail(hub.name, 'answer lost');
      settle(request, { kind: 'ambiguous', detail: 'no answer' });
    } else if (request.outcome !== null) {
      settle(request, request.outcome);
    }
  }

  #write(request: RefreshRequest): void {
    this.invariants.checkSend(request);
    request.writtenAt = this.time;
    this.portal.process(request, this.time);
  }

  /** A fault that may lose the answers to what a hub has sent. */
  #fail(name: HubName, mishap: string): void {
    this.faults += 1;
    this.#mark(name, mishap);
  }

  #mark(name: HubName, mishap: string): void {
    for (const request of this.portal.requests) {
      if (request.hub === name && !request.isSaved) request.mishaps.add(mishap);
    }
  }

  async #promote(lost: number): Promise<void> {
    this.faults += 1;
    for (const name of HUBS) {
      await this.hubs[name].disconnect();
      this.hubs[name].ghosts = [];
      this.hubs[name].note('promotion');
      this.#mark(name, 'disconnected');
    }
    this.database.promote(lost);
    this.invariants.promoted();
  }

  #committed(hub: HubName, isNews: boolean): void {
    for (const name of HUBS) {
      const { run } = this.hubs[name];
      if (isNews && name !== hub && run?.news === 'none') run.news = 'some';
    }
    const row = this.database.row(CONNECTION);
    if (row !== undefined) this.invariants.committed(row);
    for (const request of this.portal.requests) {
      if (request.hub === hub && request.isSettled && row?.attempt === null) request.isSaved = true;
    }
  }

  #canAdvance(): boolean {
    const next = nextMoment(this);
    if (next === null) return false;
    const pauses = HUBS.filter((name) => isBusy(this, name, next) && !this.hubs[name].isPaused).length;
    if (!this.#mayFail) return pauses === 0;
    const { maxAdvances, maxFaults, faults } = this.scenario;
    if (this.#advances >= maxAdvances) return false;
    return pauses === 0 || (faults.includes('pause') && this.faults + pauses <= maxFaults);
  }

  #advance(): void {
    const next = nextMoment(this) ?? this.time;
    for (const name of HUBS) {
      if (!isBusy(this, name, next)) continue;
      if (!this.hubs[name].isPaused) this.faults += 1;
      this.hubs[name].isPaused = true;
      this.#mark(name, 'paused');
    }
    this.#advances += 1;
    this.invariants.passing(next);
    this.database.time = next;
  }
}
