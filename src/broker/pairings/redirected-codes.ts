import { linksOf } from '../../core/pairings/pairing.ts';
import type { UnconfirmedLogin } from '../../core/pairings/pairing-administration.ts';
import type { Secret } from '../../core/secret.ts';
import { withTimeout } from '../../system/clock.ts';
import { type RateLimit, TokenBuckets } from '../../system/limits/token-buckets.ts';
import { sha256 } from '../../system/secret-hash.ts';
import { pollLinks } from './code-polling.ts';
import type { PairingContext } from './pairing-context.ts';
import type { PairingRunner } from './pairing-runner.ts';

/** The portal is polled at once and after these further delays in ms: polling may lag a little behind the redirect. */
const POLL_DELAYS = [0, 1000, 2000];
/** A slow portal is awaited at most this long in total, in ms: the browser waits, and the code lives 30 s. */
const CHECK_TIMEOUT = 4500;
/**
 * Limits the polls that redirects cause for one pairing, besides the regular ones: anybody who saw the link can send
 * any number of codes.
 */
const POLL_LIMIT: RateLimit = { burst: 6, interval: 5000 };
/** A code lives 30 to 60 s; one that is not confirmed within this time is dropped, in ms. */
const CODE_LIFETIME_MS = 60_000;
/** The most codes that wait for confirmation, one per address. */
const MAX_UNCONFIRMED = 3;
/** How often a code is checked again because the pairing changed its step meanwhile. */
const MAX_CHECKS = 3;

/** A code that a browser has brought, and its `iss` (RFC 9207) if it has one. */
export interface RedirectedCode {
  readonly code: Secret;
  readonly issuer?: string;
}

/** A browser that has brought a code. */
export interface RedirectedBrowser {
  readonly address: string;
  /** Whether the hub itself sent it to the portal for this pairing. */
  readonly wasSentByHub: boolean;
}

/** A code that waits for a person to confirm it. */
interface UnconfirmedCode extends UnconfirmedLogin {
  /** Null once it has expired: it is remembered so that the same browser does not ask again. */
  code: Secret | null;
  /** Cancels the timer that drops it. */
  readonly disarm: () => void;
}

/**
 * The codes of one pairing that arrive by redirect. Anybody who saw the link can send codes, including one of their own
 * account, so such a code is a hint and not proof. The portal is polled at once for the code of this login, and that
 * code is exchanged. If the portal has none, the redirected code is accepted only from a browser that the hub itself
 * sent there; any other is held until an installer confirms it. Held codes are only in memory, so another hub of a site
 * neither shows nor confirms them.
 */
export class RedirectedCodes {
  readonly #context: PairingContext;
  readonly #state: PairingRunner;
  readonly #pollBuckets = new TokenBuckets();
  /**
   * The check under way, and the next one, which all codes share that arrive during the first: they may be newer than
   * its last poll.
   */
  #check: Promise<void> = Promise.resolve();
  #nextCheck: Promise<void> | null = null;
  readonly #unconfirmedCodes = new Map<string, UnconfirmedCode>();

  constructor(context: PairingContext, state: PairingRunner) {
    this.#context = context;
    this.#state = state;
  }

  /** Resolves when the code is exchanged, held or discarded. */
  async receive(code: Secret, browser: RedirectedBrowser): Promise<void> {
    const hash = sha256(code.reveal());
    for (let checks = 0; checks < MAX_CHECKS; checks++) {
      await this.#state.whenIdle();
      if (this.#isSettled(hash)) return;
      const { signal } = this.#state;
      await this.#checkWithPortal();
      if (!signal.aborted) break;
    }
    await this.#state.whenIdle();
    if (this.#isSettled(hash)) return;
    if (browser.wasSentByHub) await this.#state.submitCode({ code, issuer: null }, null);
    else this.#holdForConfirmation(code, hash, browser.address);
  }

  /** The logins that an installer may confirm now. */
  get unconfirmed(): readonly UnconfirmedLogin[] {
    if (this.#state.pairing.step.kind === 'ended') return [];
    const { spentCodes } = this.#state.pairing;
    return [...this.#unconfirmedCodes.values()]
      .filter(({ id, code }) => code !== null && !spentCodes.includes(id))
      .map(({ id, address }) => ({ id, address }));
  }

  /** Whether a code waits for confirmation, or has waited too long; null for any other code. */
  confirmationStatus(code: Secret): 'unconfirmed' | 'too_late' | null {
    const hash = sha256(code.reveal());
    const held = [...this.#unconfirmedCodes.values()].find(({ id }) => id === hash);
    if (held === undefined || this.#state.pairing.spentCodes.includes(hash)) return null;
    return held.code === null ? 'too_late' : 'unconfirmed';
  }

  /**
   * An installer confirms that a login was theirs. Resolves when its exchange has ended; an unknown login is ignored.
   * @param user the installer's name
   */
  async confirm(id: string, user?: string): Promise<void> {
    await this.#state.tryClaim();
    const held = [...this.#unconfirmedCodes.values()].find((one) => one.id === id);
    if (!held?.code) return;
    this.#state.log.info('login_confirmed', { connection: this.#state.name, address: held.address, user });
    await this.#state.submitCode({ code: held.code, issuer: null }, null);
  }

  /** Drops all held codes. */
  clear(): void {
    for (const { disarm } of this.#unconfirmedCodes.values()) disarm();
    this.#unconfirmedCodes.clear();
  }

  /** Whether no check is needed: the code was exchanged or is held, or the pairing accepts no such login. */
  #isSettled(hash: string): boolean {
    const { isRunning, pairing } = this.#state;
    const isPolled = linksOf(pairing.step).some(({ kind }) => kind === 'poll');
    const isHeld = [...this.#unconfirmedCodes.values()].some(({ id }) => id === hash);
    return !isRunning || isHeld || !isPolled || pairing.spentCodes.includes(hash);
  }

  /** Polls the portal at once, if the pairing is polled: a browser has brought what may be forged. */
  async askPortal(): Promise<void> {
    const isPolled = linksOf(this.#state.pairing.step).some(({ kind }) => kind === 'poll');
    if (isPolled && this.#state.isRunning) await this.#checkWithPortal();
    await this.#state.whenIdle();
  }

  #checkWithPortal(): Promise<void> {
    this.#nextCheck ??= this.#check.then(() => {
      this.#nextCheck = null;
      this.#check = withTimeout(this.#pollNow(), CHECK_TIMEOUT, this.#context.environment.timers);
      return this.#check;
    });
    return this.#nextCheck;
  }

  async #pollNow(): Promise<void> {
    const { signal } = this.#state;
    for (const delay of POLL_DELAYS) {
      if (delay > 0) await this.#context.environment.timers.sleep(delay, signal);
      const { isRunning, pairing } = this.#state;
      const { step } = pairing;
      if (signal.aborted || !isRunning || step.kind === 'exchanging' || linksOf(step).length === 0) return;
      if (this.#takePollPermit()) await pollLinks(this.#context, this.#state, signal);
    }
  }

  /** Takes a token from the poll bucket; fails while the portal asks to retry later. */
  #takePollPermit(): boolean {
    const now = this.#context.environment.clock.now().uptime;
    return this.#state.retryAfterMs === 0 && this.#pollBuckets.take('', POLL_LIMIT, now) === 0;
  }

  #holdForConfirmation(code: Secret, id: string, address: string): void {
    const previous = this.#unconfirmedCodes.get(address);
    if (previous === undefined && this.#unconfirmedCodes.size >= MAX_UNCONFIRMED) {
      const expired = [...this.#unconfirmedCodes].find(([, held]) => held.code === null);
      if (expired === undefined) return;
      this.#unconfirmedCodes.delete(expired[0]);
    }
    previous?.disarm();
    const disarm = this.#context.environment.timers.after(CODE_LIFETIME_MS, () => {
      held.code = null;
      this.#state.notifyWatchers();
    });
    const held: UnconfirmedCode = { id, address, code, disarm };
    this.#unconfirmedCodes.set(address, held);
    if (previous === undefined)
      this.#state.log.warn('login_confirmation_needed', { connection: this.#state.name, address });
    this.#state.notifyWatchers();
  }
}
