import { messageOf } from '../../core/failure.ts';
import type { LinkResult } from '../../core/lan-service.ts';
import {
  type DeviceCodes,
  type FailureReason,
  isInstallerInitiated,
  linksOf,
  type Pairing,
  resumed,
} from '../../core/pairings/pairing.ts';
import type { UnconfirmedLogin } from '../../core/pairings/pairing-administration.ts';
import type { CredentialLocation, LoginLink } from '../../core/portal.ts';
import { pairingFailure } from '../../core/reports/pairing-failure.ts';
import type { Secret } from '../../core/secret.ts';
import { withTimeout } from '../../system/clock.ts';
import { sha256 } from '../../system/compare.ts';
import { pollForCode } from './code-polling.ts';
import { LinkRenewal } from './link-renewal.ts';
import { LinkRequests } from './link-requests.ts';
import type { PairingContext } from './pairing-context.ts';
import { PairingExchange } from './pairing-exchange.ts';
import { PairingProgress } from './pairing-progress.ts';
import { RedirectedCodes, type Visitor } from './redirected-codes.ts';
import { shortKeyOf } from './short-key.ts';

/** A pairing that takes the place of another waits no longer than this for a code that is being exchanged, in ms. */
const MAX_WAIT = 8000;

/**
 * One pairing at work: asks for the link, polls for the code, at once when a redirect says that there is one, and exchanges the
 * first code that comes, once. In a device flow of the appliance alone the portal is asked for nothing until a person
 * opens the link.
 */
export class PairingRun implements AsyncDisposable {
  /** SHA-256 of the pairing's nonce, base64url, to find it by. */
  readonly nonceHash: string;
  /** What its short link ends with, 16 characters of base64url. */
  readonly shortKey: string;
  /** SHA-256 of that, base64url, to find it by. */
  readonly shortKeyHash: string;
  readonly #context: PairingContext;
  readonly #progress: PairingProgress;
  readonly #links: LinkRequests;
  readonly #renewal: LinkRenewal;
  readonly #exchange: PairingExchange;
  readonly #redirected: RedirectedCodes;
  #done: Promise<void> = Promise.resolve();

  private constructor(context: PairingContext, pairing: Pairing) {
    this.nonceHash = sha256(pairing.nonce);
    this.shortKey = shortKeyOf(pairing.id);
    this.shortKeyHash = sha256(this.shortKey);
    this.#context = context;
    this.#progress = new PairingProgress(context, pairing);
    this.#links = new LinkRequests(context, this.#progress);
    this.#renewal = new LinkRenewal(context.environment, this.#progress, this.#links);
    this.#exchange = new PairingExchange(context, this.#progress);
    this.#redirected = new RedirectedCodes(
      context,
      this.#progress,
      (code, link) => this.#takeCode(code, link),
      () => this.#exchange.settled(),
    );
  }

  /** Takes a pairing up where it stands; an ended one only remembers its result. */
  static resume(context: PairingContext, pairing: Pairing): PairingRun {
    const run = new PairingRun(context, resumed(pairing));
    run.#done = run.#goOn(pairing).catch(async (error: unknown) => {
      run.#progress.log.error('pairing_crashed', { appliance: run.#progress.name, error: messageOf(error) });
      await run.#progress.move({ kind: 'failed', reason: 'cancelled' });
    });
    return run;
  }

  get pairing(): Pairing {
    return this.#progress.pairing;
  }

  /** Whether it has not ended yet. */
  get open(): boolean {
    return this.pairing.step.kind !== 'ended';
  }

  /** Why there is no link or code just now, in words; null while the portal answers. */
  get trouble(): string | null {
    return this.#progress.trouble;
  }

  /** Where the hub's credentials at its portal are corrected. */
  get credentialLocation(): CredentialLocation {
    const { portal } = this.pairing;
    return this.#context.portalOf(portal)?.credentialLocation ?? { portal };
  }

  /** Why it failed for such a reason, and what to do next, for people at the command line. */
  messageOf(reason: FailureReason): string {
    const { why, next } = pairingFailure(reason, this.#context.nameOf(this.pairing.appliance), this.credentialLocation);
    return `${why}; ${next}`;
  }

  /** Milliseconds until the pairing expires. */
  get timeLeft(): number {
    return this.#progress.timeLeft;
  }

  /** Where the portal shall bring the code now, as a {@link LoginLink} has it. */
  get redirect(): string | null {
    return this.#progress.redirect;
  }

  /** The hub has another address, or none: an installer gets a fresh link where the one at hand leads elsewhere. */
  addressChanged(): void {
    this.#renewal.addressChanged();
    this.#progress.addressChanged();
  }

  /** The hub's clock was set: where the portal's certificate did not fit it, the portal is asked again at once. */
  clockSet(): void {
    this.#progress.clockSet();
  }

  /** Calls `watcher` after every change, until the function it returns is called. */
  watch(watcher: () => void): () => void {
    return this.#progress.watch(watcher);
  }

  /** A fresh link for a person who opens a device flow's page, within the time that one waits. */
  openLink(): Promise<LinkResult> {
    return this.#links.open();
  }

  /** Logins that the portal does not confirm; an installer may. */
  get unconfirmed(): readonly UnconfirmedLogin[] {
    return this.#redirected.unconfirmed;
  }

  /** Takes what a browser says is the code. Resolves when that is exchanged, or has come to nothing: see {@link RedirectedCodes}. */
  async receiveCode(code: Secret, visitor: Visitor): Promise<void> {
    await this.#redirected.receive(code, visitor);
  }

  /** Whether a code that was received waits for an installer to confirm it, or did so for too long; null for any other. */
  standingOf(code: Secret): 'unconfirmed' | 'too_late' | null {
    return this.#redirected.standingOf(code);
  }

  /** An installer confirms a login. @param login its id; of one that is gone nothing happens */
  async confirm(login: string): Promise<void> {
    await this.#redirected.confirm(login);
  }

  /**
   * The appliance begins a device flow, or begins it anew: from now on these codes are the pairing's.
   * @returns false where another pairing must be begun for that
   * @throws Failure as the store
   */
  async takeCodes(codes: DeviceCodes): Promise<boolean> {
    await this.#exchange.concluded();
    const { environment, times } = this.#context;
    const at = environment.clock.now();
    return this.#progress.moveOnceWritten({ kind: 'device', codes, at, lifetime: times.lifetime });
  }

  /**
   * An installer takes a device flow over: see {@link PairingEvent}.
   * @returns false where another pairing must be begun for that
   * @throws Failure as the store
   */
  async takeOver(): Promise<boolean> {
    await this.#exchange.concluded();
    const { environment, times } = this.#context;
    const at = environment.clock.now();
    const { linkServes } = this.#links;
    const taken = await this.#progress.moveOnceWritten({
      kind: 'installer',
      at,
      lifetime: times.lifetime,
      linkServes,
    });
    if (this.pairing.step.kind === 'asking') this.#progress.wake();
    return taken;
  }

  /**
   * It becomes part of a round.
   * @returns false where it has ended
   * @throws Failure as the store
   */
  async join(round: string): Promise<boolean> {
    await this.#exchange.concluded();
    await this.#progress.moveOnceWritten({ kind: 'round', round });
    return this.pairing.round === round && this.open;
  }

  /**
   * Makes room for another pairing. A code that is being exchanged may bring a grant, and then this one has ended well; it
   * is waited for some seconds, and goes on beside the other one after that.
   */
  async giveWay(): Promise<void> {
    const gone = this.#exchange.settled().then(() => this.fail('replaced'));
    await withTimeout(gone, MAX_WAIT, this.#context.environment.timers);
  }

  /** A login was refused at the portal. What a code that is being exchanged brings counts for more. */
  async refused(reason: FailureReason): Promise<void> {
    await this.#exchange.settled();
    await this.fail(reason);
  }

  /** Ends the pairing, unless it has ended already, or ends just now with its grant being put in place. */
  async fail(reason: FailureReason): Promise<void> {
    await this.#exchange.concluded();
    await this.#progress.move({ kind: 'failed', reason });
  }

  /** That it failed is told no longer. */
  async forgetFailure(): Promise<void> {
    const { failed, ...pairing } = this.pairing;
    if (failed === undefined) return;
    this.#progress.take(pairing);
    await this.#progress.saveIfPossible(pairing);
  }

  /** Stops, leaving the pairing open; waits for an exchange that was sent, and for what is being written. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#progress.stop();
    this.#redirected.clear();
    await Promise.all([this.#done, this.#exchange.settled()]);
    await this.#progress.written();
  }

  /** @param before as the last run left it */
  async #goOn(before: Pairing): Promise<void> {
    if (before.step.kind === 'exchanging') {
      const since = new Date(before.step.since.wall).toISOString();
      this.#progress.log.warn('code_exchange_interrupted', { appliance: this.#progress.name, since });
      // Told once, however often the hub is started before the portal gives a fresh link.
      await this.#progress.saveIfPossible(this.pairing);
    }
    await this.#work();
  }

  async #work(): Promise<void> {
    while (!this.#progress.stopping) {
      await this.#progress.boundTurns(this.#progress.signal);
      switch (this.pairing.step.kind) {
        case 'asking':
          await Promise.all([this.#askForLink(), linksOf(this.pairing.step).length > 0 && this.#poll()]);
          break;
        case 'waiting':
          await Promise.all([this.#poll(), this.#renewal.keep()]);
          break;
        case 'exchanging':
          await this.#exchange.settled();
          break;
        case 'ended':
          return;
      }
    }
  }

  /** Asks for a link until one is there, or the pairing comes to another step; without an installer it is left to people. */
  async #askForLink(): Promise<void> {
    const { signal } = this.#progress;
    for (let failures = 0; !signal.aborted && !this.#progress.stopping; ) {
      if (isInstallerInitiated(this.pairing)) failures = (await this.#links.ask(failures)) ? 0 : failures + 1;
      else await this.#progress.pause(Number.POSITIVE_INFINITY, signal);
    }
  }

  /**
   * Exchanges a code. Resolves when that has ended, or the exchange of another that is under way.
   * @param link the one that it came through, where that is known
   */
  async #takeCode(code: Secret, link: LoginLink | null): Promise<void> {
    this.#links.spend();
    await this.#exchange.take(code, link);
  }

  #poll(): Promise<void> {
    return pollForCode(this.#context, this.#progress, (code, link) => this.#takeCode(code, link));
  }
}
