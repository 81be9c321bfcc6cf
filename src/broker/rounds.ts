import type { Appliance } from '../core/appliance.ts';
import { messageOf } from '../core/failure.ts';
import { byInstaller, type Pairing, timeLeft } from '../core/pairing.ts';
import type { LeftOut, Round, RoundLink } from '../core/round.ts';
import { type Allowance, Buckets } from '../system/allowances.ts';
import { sha256 } from '../system/compare.ts';
import type { Appliances } from './appliances.ts';
import type { PairingRun } from './pairing-run.ts';
import type { Pairings } from './pairings.ts';
import type { Surroundings } from './surroundings.ts';

/** So long after the end of its pairing's time the nonce of one tells and begins nothing of others, in ms: browsers keep addresses. */
const NONCE_OUTLIVES = 3_600_000;
/**
 * Pairings that whoever holds a nonce begins, after some that came to nothing: each costs the portal a request and the hub some
 * writes, and by the nonce of the one that was begun it can be ended and the next one begun.
 */
const BEGUN_BY_NONCE: Allowance = { most: 30, every: 20_000 };

/** What rounds work with. */
export interface RoundsContext {
  readonly surroundings: Surroundings;
  readonly appliances: Appliances;
  readonly pairings: Pairings;
  /** Whether only a person's login can give the appliance a grant that it can go on with. */
  needsPairing(appliance: Appliance): boolean;
}

/**
 * Rounds of pairings: all appliances that need one, one after the other. Where a round stands is in its pairings alone, each
 * of which has its mark, so that it outlives the hub. When one has ended well the next is begun, and its link is there
 * when a person wants to go on; after one that has not, a person says how.
 */
export class Rounds {
  readonly #context: RoundsContext;
  readonly #begunByNonce = new Buckets();
  /** One step after the other, so that two who go on at the same time get the same pairing. */
  #steps: Promise<unknown> = Promise.resolve();

  constructor(context: RoundsContext) {
    this.#context = context;
  }

  /** Takes up the rounds that the last run left; to be called when the pairings are loaded. */
  resume(): void {
    for (const run of this.#context.pairings.all(({ open, pairing }) => open && pairing.round !== undefined)) {
      this.#goOnAfter(run);
    }
  }

  /**
   * Begins a round with the first appliance that needs pairing; where one is under way, that is the one.
   * @throws Failure as `Pairings.begin`
   */
  begin(): Promise<Round> {
    return this.#oneByOne(async () => {
      const open = this.#context.pairings.find((run) => run.open && run.pairing.round !== undefined);
      const id = open?.pairing.round ?? this.#context.surroundings.random.uuid();
      if (open === undefined) await this.#beginNext(id);
      return this.view(id);
    });
  }

  /**
   * Begins the pairing of the round's next appliance, unless one of the round is open already.
   * @throws Failure as `Pairings.begin`
   */
  next(id: string): Promise<Round> {
    return this.#oneByOne(async () => {
      if (this.#openOf(id) === undefined) await this.#beginNext(id);
      return this.view(id);
    });
  }

  /**
   * Another pairing of the same appliance, in the same round if it was in one.
   * @throws Failure as `Pairings.begin`
   */
  async again(appliance: Appliance, { round }: Pairing): Promise<PairingRun> {
    const run = await this.#context.pairings.begin(appliance, round === undefined ? {} : { round });
    if (round !== undefined) this.#goOnAfter(run);
    return run;
  }

  /** How a round stands. Of one that nobody has begun: which appliances are connected. */
  view(id: string): Round {
    const { appliances, needsPairing } = this.#context;
    const connected: string[] = [];
    const leftOut: LeftOut[] = [];
    const open = this.#openOf(id);
    for (const appliance of appliances.list()) {
      const { name } = appliance;
      if (appliance.waitingSince !== null) leftOut.push({ name, pairing: null, reason: 'waiting_for_approval' });
      else if (!needsPairing(appliance)) connected.push(name);
      else {
        const tried = this.#triedIn(id, appliance);
        const result = tried?.pairing.step.kind === 'ended' ? tried.pairing.step.result : null;
        const reason = result?.kind === 'failed' ? result.reason : 'not_begun';
        leftOut.push({ name, pairing: tried?.pairing.id ?? null, reason });
      }
    }
    const current = open && appliances.byId(open.pairing.appliance);
    return {
      id,
      current: open && current ? { pairing: open.pairing.id, appliance: current.name } : null,
      next: this.#nextOf(id)?.name ?? null,
      connected,
      leftOut: leftOut.filter(({ name }) => name !== current?.name),
    };
  }

  /**
   * Where the round stands that the pairing of a nonce is part of; null where it is part of none, and where it is long over:
   * an address in the history of a browser must not tell for ever how the house is.
   */
  ofNonce(nonce: string): Round | null {
    const run = this.#byNonce(nonce);
    const round = run?.pairing.round;
    return run === undefined || round === undefined || this.#isOld(run) ? null : this.view(round);
  }

  /**
   * Takes whoever holds the nonce of one of its pairings on to the next appliance's login, within the time that a person
   * waits; a pairing that came to nothing is gone past, or tried again.
   * @throws Failure as `Pairings.begin`
   */
  async goOn(nonce: string, again: boolean): Promise<RoundLink> {
    const run = this.#byNonce(nonce);
    const round = run?.pairing.round;
    if (run === undefined || round === undefined || this.#isOld(run)) return { kind: 'over' };
    const appliance = this.#context.appliances.byId(run.pairing.appliance);
    if (again && appliance !== undefined)
      return this.#linkOf(await this.#oneByOne(() => this.#tryAgain(appliance, run)));
    await this.#oneByOne(async () => {
      const isDue = this.#openOf(round) === undefined && this.#nextOf(round) !== undefined;
      if (isDue && this.#mayBeginByNonce()) await this.#beginNext(round);
    });
    return this.#linkOf(this.#openOf(round));
  }

  /** Two who try again at the same time get the same pairing; one that was begun since is the one. */
  async #tryAgain(appliance: Appliance, { pairing }: PairingRun): Promise<PairingRun | undefined> {
    if (!this.#context.needsPairing(appliance))
      return pairing.round === undefined ? undefined : this.#openOf(pairing.round);
    const newest = this.#context.pairings.ofAppliance(appliance.id);
    if (newest?.open === true && byInstaller(newest.pairing)) return newest;
    return this.#mayBeginByNonce() ? this.again(appliance, pairing) : undefined;
  }

  #mayBeginByNonce(): boolean {
    const bucket = this.#begunByNonce.filled('', BEGUN_BY_NONCE, this.#context.surroundings.clock.now().uptime);
    if (bucket.left < 1) return false;
    bucket.left -= 1;
    return true;
  }

  async #linkOf(run: PairingRun | undefined): Promise<RoundLink> {
    if (run === undefined) return { kind: 'over' };
    const link = await run.openLink();
    if (link.kind === 'link') return link;
    // A link that is there may serve even where the portal gives no further one.
    const { step } = run.pairing;
    if (step.kind === 'waiting') return { kind: 'link', authorizeUrl: step.link.authorizeUrl };
    const appliance = this.#context.appliances.byId(run.pairing.appliance)?.name;
    return link.kind === 'over' || appliance === undefined ? { kind: 'over' } : { kind: 'unreachable', appliance };
  }

  async #beginNext(id: string): Promise<void> {
    const appliance = this.#nextOf(id);
    if (appliance === undefined) return;
    const run = await this.#context.pairings.begin(appliance, { joins: true, round: id });
    this.#context.surroundings.log.info('pairing begun', { appliance: appliance.name });
    this.#goOnAfter(run);
  }

  /** The first that needs pairing and was not tried in this round. */
  #nextOf(id: string): Appliance | undefined {
    return this.#context.appliances
      .list()
      .find(
        (appliance) =>
          appliance.waitingSince === null &&
          this.#context.needsPairing(appliance) &&
          this.#triedIn(id, appliance) === undefined,
      );
  }

  #triedIn(id: string, appliance: Appliance): PairingRun | undefined {
    return this.#context.pairings.find(({ pairing }) => pairing.round === id && pairing.appliance === appliance.id);
  }

  #openOf(id: string): PairingRun | undefined {
    return this.#context.pairings.find((run) => run.open && run.pairing.round === id);
  }

  #byNonce(nonce: string): PairingRun | undefined {
    const hash = sha256(nonce);
    return this.#context.pairings.find(({ nonceHash }) => nonceHash === hash);
  }

  #isOld({ pairing }: PairingRun): boolean {
    const late = { ...pairing, lifetime: pairing.lifetime + NONCE_OUTLIVES };
    return timeLeft(late, this.#context.surroundings.clock.now()) <= 0;
  }

  #goOnAfter(run: PairingRun): void {
    const unwatch = run.watch(() => {
      const { step, round } = run.pairing;
      if (step.kind !== 'ended') return;
      unwatch();
      if (step.result.kind !== 'paired' || round === undefined) return;
      this.next(round).catch((error: unknown) => {
        this.#context.surroundings.log.warn('next pairing of the round could not be begun', {
          error: messageOf(error),
        });
      });
    });
  }

  #oneByOne<T>(work: () => Promise<T>): Promise<T> {
    const step = this.#steps.then(work);
    this.#steps = step.catch(() => undefined);
    return step;
  }
}
