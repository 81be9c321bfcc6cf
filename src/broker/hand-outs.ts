import { sameScope } from '../core/appliance.ts';
import { leastLeft } from '../core/grant.ts';
import type { HandOut } from '../core/hand-out.ts';
import type { Grants, HeldGrant } from './grants.ts';
import type { Surroundings } from './surroundings.ts';
import { within } from './within.ts';

/** Nobody is kept waiting for a refresh longer than this, in ms. */
const LONGEST_WAIT = 10_000;

/** Hands tokens out: from memory, or after the one refresh that is under way. */
export class HandOuts {
  readonly #grants: Grants;
  readonly #surroundings: Pick<Surroundings, 'clock' | 'timers'>;

  constructor(grants: Grants, surroundings: Pick<Surroundings, 'clock' | 'timers'>) {
    this.#grants = grants;
    this.#surroundings = surroundings;
  }

  /**
   * @param appliance its id
   * @param scope what the appliance asks for; null where it does not say
   * @param atLeast how long the token should last at least, in ms
   */
  async handOut(appliance: string, scope: string | null, atLeast = 0): Promise<HandOut> {
    const held = this.#grants.get(appliance);
    if (held === undefined || !this.#serves(held, scope)) return this.#whatIsThere(held, scope);
    // What is left is told in whole seconds, so that less than one is nothing.
    const least = Math.max(leastLeft(held.grant), atLeast, 1000);
    if ((this.#grants.remaining(held) ?? 0) < least && (held.refreshing !== null || this.#mayRefresh(held))) {
      await within(this.#grants.refresh(appliance), LONGEST_WAIT, this.#surroundings.timers);
    }
    return this.#whatIsThere(this.#grants.get(appliance), scope);
  }

  #serves({ grant }: HeldGrant, scope: string | null): boolean {
    return scope === null || sameScope(scope, grant.scope);
  }

  /** A token that is too old is refreshed at once, but not against a backoff that runs: that would storm the portal. */
  #mayRefresh(held: HeldGrant): boolean {
    const at = this.#grants.promptedAt(held);
    return at !== null && at <= this.#surroundings.clock.now().uptime;
  }

  #whatIsThere(held: HeldGrant | undefined, wanted: string | null): HandOut {
    if (held === undefined) return { kind: 'not_paired' };
    if (!this.#serves(held, wanted)) return { kind: 'other_scope', scope: held.grant.scope };
    const { accessToken, scope } = held.grant;
    const expiresIn = Math.floor((this.#grants.remaining(held) ?? 0) / 1000);
    if (expiresIn >= 1) return { kind: 'token', accessToken, expiresIn, scope };
    if (held.health.kind === 'refused') return { kind: 'needs_pairing' };
    const at = this.#grants.promptedAt(held) ?? 0;
    const wait = Math.ceil((at - this.#surroundings.clock.now().uptime) / 1000);
    return { kind: 'unavailable', retryAfter: Math.max(1, wait) };
  }
}
