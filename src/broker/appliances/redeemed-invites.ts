import { isDeepStrictEqual } from 'node:util';
import type { Appliance, ClientCredentials, RegistrantAddress } from '../../core/appliances/appliance.ts';
import type { ClientMetadata, Invite } from '../../core/appliances/registration.ts';

/** Who registers: what it says of itself, and where it is. */
export interface Registrant {
  readonly metadata: ClientMetadata;
  readonly from: RegistrantAddress;
}

/** What an invite has brought. */
export interface Redeemed {
  readonly invite: Invite;
  /** The appliance's id. */
  readonly appliance: string;
  /** Those it was given; where it has others by now, somebody else has given it those. */
  readonly credentials: ClientCredentials;
  readonly by: Registrant;
  /** When it was used at first; on the boot clock, in ms. */
  readonly at: number;
  /** Counts on from one to the next. */
  readonly number: number;
}

/** An appliance that lost the answer comes back within this, in ms. */
const GRACE = 600_000;

/**
 * The invites that were used a short time ago, by appliances that nothing was heard of since: the answer may have been lost,
 * and with it the secret. Of this run of the hub only: after a restart an installer has to remove such an appliance.
 */
export class RedeemedInvites {
  readonly #byHash = new Map<string, Redeemed>();
  #count = 0;

  /** How many were used so far. */
  get count(): number {
    return this.#count;
  }

  /** @param at when it was used at first; on the boot clock, in ms */
  add(invite: Invite, { id, credentials }: Appliance, by: Registrant, at: number): void {
    for (const [hash, other] of this.#byHash) if (at - other.at > GRACE) this.#byHash.delete(hash);
    this.#count += 1;
    this.#byHash.set(invite.hash, { invite, appliance: id, credentials, by, at, number: this.#count });
  }

  /**
   * What an invite has brought, where this is the same appliance that comes back with it.
   * @param seen what {@link count} was when it came: who was here before the first had its answer does not come back
   * @param now on the boot clock, in ms
   */
  find(hash: string, by: Registrant, seen: number, now: number): Redeemed | undefined {
    const found = this.#byHash.get(hash);
    if (found === undefined || found.number > seen || !this.has(found, now)) return undefined;
    const isSame = ({ metadata, from }: Registrant) =>
      isDeepStrictEqual([metadata, from.shares], [found.by.metadata, found.by.from.shares]);
    return isSame(by) ? found : undefined;
  }

  /** Whether the appliance may still come back. @param now on the boot clock, in ms */
  has(redeemed: Redeemed, now: number): boolean {
    return this.#byHash.get(redeemed.invite.hash) === redeemed && now - redeemed.at <= GRACE;
  }

  /** An appliance has proved who it is: it has its answer. @param appliance its id */
  heard(appliance: string): void {
    for (const [hash, redeemed] of this.#byHash) if (redeemed.appliance === appliance) this.#byHash.delete(hash);
  }
}
