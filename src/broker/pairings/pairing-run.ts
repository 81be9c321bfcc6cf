import { Failure } from '../../core/failure.ts';
import type { LoginLinkResult } from '../../core/lan-service.ts';
import { linksOf, type Pairing, type PairingFailureReason } from '../../core/pairings/pairing.ts';
import type { CredentialLocation } from '../../core/portals/identity.ts';
import { explainPairingFailure } from '../../core/reports/pairing-failure.ts';
import { withTimeout } from '../../system/clock.ts';
import { sha256 } from '../../system/secret-hash.ts';
import { AuthorizationResponses } from './authorization-responses.ts';
import { pollForResult } from './code-polling.ts';
import { LinkRequests } from './link-requests.ts';
import type { PairingContext } from './login-completion.ts';
import { MAX_EXCHANGE_WAIT, PairingRunner } from './pairing-runner.ts';

/**
 * One pairing, for everybody who uses it: what people and browsers do with it. Its runner requests the link, polls for
 * the code (at once if a redirect announces one), and exchanges the first code once. In a device flow without an
 * installer, the portal gets no request until a person opens the link.
 */
export class PairingRun implements AsyncDisposable {
  /** SHA-256 of the pairing's nonce, base64url, for lookups. */
  readonly nonceHash: string;
  /** The end of its short link, 16 characters of base64url. */
  readonly shortKey: string;
  /** SHA-256 of `shortKey`, base64url, for lookups. */
  readonly shortKeyHash: string;
  /** Takes its events, and runs it while this hub owns it. */
  readonly runner: PairingRunner;
  /** The authorization responses that browsers bring. */
  readonly responses: AuthorizationResponses;
  readonly #context: PairingContext;
  readonly #links: LinkRequests;

  /** A pairing that this hub does not run yet: see {@link PairingRunner.own}. */
  constructor(context: PairingContext, pairing: Pairing) {
    this.nonceHash = sha256(pairing.nonce);
    this.shortKey = shortLinkKey(pairing.id);
    this.shortKeyHash = sha256(this.shortKey);
    this.#context = context;
    this.runner = new PairingRunner(context, pairing, (now) => this.#work(now));
    this.#links = new LinkRequests(context, this.runner);
    this.responses = new AuthorizationResponses(context, this.runner);
  }

  get pairing(): Pairing {
    return this.runner.pairing;
  }

  /** Whether it has not ended yet. */
  get isOpen(): boolean {
    return this.pairing.step.kind !== 'ended';
  }

  /** Where to correct the hub's credentials for its portal. */
  get credentialLocation(): CredentialLocation {
    const { portal } = this.pairing;
    return this.#context.portalOf(portal)?.credentialLocation ?? { portal };
  }

  /** The scope that is requested at the portal; null if none is. */
  get requestedScope(): string | null {
    const { portal, scope } = this.pairing;
    return scope ?? this.#context.portalOf(portal)?.defaultScope ?? null;
  }

  /** The cause of this failure and what to do next, for the command line. */
  failureMessage(reason: PairingFailureReason): string {
    const { cause, advice } = explainPairingFailure(
      reason,
      this.#context.nameOf(this.pairing.connection),
      this.credentialLocation,
      this.pairing.failureDetail,
    );
    return `${cause}; ${advice}`;
  }

  /** The hub has another address, or none: an installer gets a fresh link if the current one redirects elsewhere. */
  onAddressChanged(): void {
    this.#links.onAddressChanged();
    this.runner.onAddressChanged();
  }

  /** A fresh link for a person who opens a device flow's page; resolves within the time that a person waits. */
  async openLink(): Promise<LoginLinkResult> {
    await this.runner.tryClaim();
    return this.#links.open();
  }

  /**
   * An installer takes over a device flow: see {@link PairingEvent}.
   * @returns false if that needs another pairing
   * @throws Failure as {@link Store}
   */
  async takeOver(user?: string): Promise<boolean> {
    const applied = await this.runner.request({
      kind: 'installer',
      lifetime: this.#context.times.lifetime,
      isLinkUsable: this.#links.hasUsableLink,
      ...(user !== undefined && { user }),
    });
    if (this.pairing.step.kind === 'asking') this.runner.wake();
    return applied;
  }

  /**
   * Adds the pairing to a batch.
   * @returns false if the pairing has ended
   * @throws Failure as {@link Store}
   */
  async joinBatch(batch: string): Promise<boolean> {
    await this.runner.request({ kind: 'batch', batch });
    return this.pairing.batch === batch && this.isOpen;
  }

  /**
   * Ends the pairing so that another one can replace it. A code exchange under way may still produce a grant, and then
   * this pairing succeeds. It is awaited for some seconds; after that it continues beside the other pairing.
   */
  async endAsReplaced(): Promise<void> {
    const ended = this.runner.failWhenIdle('replaced');
    await withTimeout(ended, MAX_EXCHANGE_WAIT, this.#context.environment.timers);
  }

  /**
   * Ends the pairing, unless it has ended already or its grant is being stored.
   * @returns false while another hub exchanges its code, so that it goes on: see {@link loginElsewhere}
   */
  async fail(reason: PairingFailureReason): Promise<boolean> {
    await this.runner.fail(reason);
    return this.pairing.step.kind !== 'exchanging';
  }

  /** Stops and leaves the pairing open; waits for an exchange that was sent, and for pending writes. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.responses.clear();
    await this.runner.stop();
  }

  /** What the step needs, until it changes. */
  async #work({ step }: Pairing): Promise<void> {
    const isPolled = linksOf(step).length > 0;
    const links = step.kind === 'asking' ? this.#links.requestFirst() : this.#links.renewStale();
    await Promise.all([links, isPolled && pollForResult(this.#context, this.runner)]);
  }
}

/** Why a pairing, or the login of a connection, can't be ended now. */
export function loginElsewhere(): Failure {
  return new Failure('not_allowed', 'another hub of the site is completing a login: try again in a minute');
}

/** Characters of base64url: 96 bits. */
const KEY_LENGTH = 16;

/**
 * The key of a pairing's short link. A browser that opens the short link counts as sent to the portal by the hub, so
 * the key must not be derived from the nonce, which anybody can read in the portal's own link. It is derived from the
 * pairing's id, which only the installer's page and the control socket show while the pairing is open. So nothing is
 * stored for it, and a link that was scanned before a restart works after it.
 * @param id of the pairing: a version 4 UUID
 */
function shortLinkKey(id: string): string {
  return sha256(`latchkey short link ${id}`).slice(0, KEY_LENGTH);
}
