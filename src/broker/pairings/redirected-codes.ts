import { linksOf } from '../../core/pairings/pairing.ts';
import type { UnconfirmedLogin } from '../../core/pairings/pairing-administration.ts';
import type { Secret } from '../../core/secret.ts';
import { withTimeout } from '../../system/clock.ts';
import { type RateLimit, TokenBuckets } from '../../system/limits/token-bucket.ts';
import { sha256 } from '../../system/secret-hash.ts';
import { pollLinks } from './code-polling.ts';
import type { PairingContext } from './pairing-context.ts';
import type { PairingStateMachine } from './pairing-state-machine.ts';

/** The portal is polled at once, and after these further waits in ms: it may be a little behind its own redirect. */
const POLL_DELAYS = [0, 1000, 2000];
/** A portal that is slow to answer is waited for no longer than this in all, in ms: the browser waits, and the code lives 30 s. */
const CHECK_TIMEOUT = 4500;
/** Polls of one pairing because of redirects, beside the regular ones: anybody who saw the link may send any number of codes. */
const POLL_LIMIT: RateLimit = { burst: 6, interval: 5000 };
/** A code lives 30 to 60 s; one that nobody has confirmed by then is dropped, in ms. */
const CODE_LIFETIME_MS = 60_000;
/** Codes that wait to be confirmed, one from each address. */
const MAX_UNCONFIRMED = 3;
/** How often a code is looked at again because the pairing came to another step meanwhile. */
const MAX_CHECKS = 3;

/** A browser that has brought a code. */
export interface RedirectedBrowser {
  readonly address: string;
  /** The hub itself sent it to the portal for this pairing. */
  readonly wasSentByHub: boolean;
}

/** A code that waits for a person to confirm it. */
interface UnconfirmedCode extends UnconfirmedLogin {
  /** Null once it can't live any more: it is remembered so that the same browser does not ask again. */
  code: Secret | null;
  /** Ends the timer that drops it. */
  readonly disarm: () => void;
}

/**
 * The codes of one pairing that come by redirect. Anybody who saw the link may send some, also one of an account of their own, so
 * that such a code is news and not truth: the portal is asked at once for the code that it serves for this very login, and that
 * one is exchanged. If it serves none, the redirect's code counts only from a browser that the hub itself sent there; any other
 * is held until an installer confirms it.
 */
export class RedirectedCodes {
  readonly #context: PairingContext;
  readonly #state: PairingStateMachine;
  readonly #takeCode: Parameters<typeof pollLinks>[3];
  /** Resolves when no code is being exchanged. */
  readonly #whenExchangeIdle: () => Promise<void>;
  readonly #pollBuckets = new TokenBuckets();
  /** The check under way, and the one that all share who come during it: their code may be newer than its last poll. */
  #check: Promise<void> = Promise.resolve();
  #nextCheck: Promise<void> | null = null;
  readonly #unconfirmedCodes = new Map<string, UnconfirmedCode>();

  constructor(
    context: PairingContext,
    state: PairingStateMachine,
    takeCode: Parameters<typeof pollLinks>[3],
    whenExchangeIdle: () => Promise<void>,
  ) {
    this.#context = context;
    this.#state = state;
    this.#takeCode = takeCode;
    this.#whenExchangeIdle = whenExchangeIdle;
  }

  /** Resolves when the code has become what it can: exchanged, held, or nothing. */
  async receive(code: Secret, visitor: RedirectedBrowser): Promise<void> {
    const hash = sha256(code.reveal());
    for (let checks = 0; checks < MAX_CHECKS; checks++) {
      await this.#whenExchangeIdle();
      if (this.#isSettled(hash)) return;
      const { signal } = this.#state;
      await this.#checkWithPortal();
      if (!signal.aborted) break;
    }
    await this.#whenExchangeIdle();
    if (this.#isSettled(hash)) return;
    if (visitor.wasSentByHub) await this.#takeCode(code, null);
    else this.#holdForConfirmation(code, hash, visitor.address);
  }

  /** The logins that an installer may confirm now. */
  get unconfirmed(): readonly UnconfirmedLogin[] {
    if (this.#state.pairing.step.kind === 'ended') return [];
    const { spentCodes } = this.#state.pairing;
    return [...this.#unconfirmedCodes.values()]
      .filter(({ id, code }) => code !== null && !spentCodes.includes(id))
      .map(({ id, address }) => ({ id, address }));
  }

  /** Whether a code waits to be confirmed, or did so for too long; null for any other. */
  confirmationStatus(code: Secret): 'unconfirmed' | 'too_late' | null {
    const hash = sha256(code.reveal());
    const held = [...this.#unconfirmedCodes.values()].find(({ id }) => id === hash);
    if (held === undefined || this.#state.pairing.spentCodes.includes(hash)) return null;
    return held.code === null ? 'too_late' : 'unconfirmed';
  }

  /** An installer says that a login was theirs. Resolves when its exchange has ended; one that is gone changes nothing. */
  async confirm(id: string): Promise<void> {
    const held = [...this.#unconfirmedCodes.values()].find((one) => one.id === id);
    if (!held?.code) return;
    this.#state.log.info('login_confirmed', { appliance: this.#state.name, address: held.address });
    await this.#takeCode(held.code, null);
  }

  /** Forgets every code that is held. */
  clear(): void {
    for (const { disarm } of this.#unconfirmedCodes.values()) disarm();
    this.#unconfirmedCodes.clear();
  }

  /** Whether there is nothing to find out: it was exchanged, or is held, or no login is wanted. */
  #isSettled(hash: string): boolean {
    const { stopping, pairing } = this.#state;
    const isHeld = [...this.#unconfirmedCodes.values()].some(({ id }) => id === hash);
    return stopping || isHeld || linksOf(pairing.step).length === 0 || pairing.spentCodes.includes(hash);
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
      const { stopping, pairing } = this.#state;
      const { step } = pairing;
      if (signal.aborted || stopping || step.kind === 'exchanging' || linksOf(step).length === 0) return;
      if (this.#takePollPermit()) await pollLinks(this.#context, this.#state, signal, this.#takeCode);
    }
  }

  /** Takes one of the polls; there is none while the portal asks for patience. */
  #takePollPermit(): boolean {
    const bucket = this.#pollBuckets.refill('', POLL_LIMIT, this.#context.environment.clock.now().uptime);
    if (bucket.tokens < 1 || this.#state.retryAfterMs > 0) return false;
    bucket.tokens -= 1;
    return true;
  }

  #holdForConfirmation(code: Secret, id: string, address: string): void {
    const before = this.#unconfirmedCodes.get(address);
    if (before === undefined && this.#unconfirmedCodes.size >= MAX_UNCONFIRMED) {
      const dead = [...this.#unconfirmedCodes].find(([, held]) => held.code === null);
      if (dead === undefined) return;
      this.#unconfirmedCodes.delete(dead[0]);
    }
    before?.disarm();
    const disarm = this.#context.environment.timers.after(CODE_LIFETIME_MS, () => {
      held.code = null;
      this.#state.notifyWatchers();
    });
    const held: UnconfirmedCode = { id, address, code, disarm };
    this.#unconfirmedCodes.set(address, held);
    if (before === undefined)
      this.#state.log.warn('login_confirmation_needed', { appliance: this.#state.name, address });
    this.#state.notifyWatchers();
  }
}
