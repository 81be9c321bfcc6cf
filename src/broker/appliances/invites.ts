import { isDeepStrictEqual } from 'node:util';
import type { InviteRequest } from '../../core/administration.ts';
import type { Appliance, ClientCredentials } from '../../core/appliances/appliance.ts';
import type { ClientMetadata, Invite } from '../../core/appliances/registration.ts';
import { checkScope } from '../../core/connections/scope.ts';
import { Failure } from '../../core/failure.ts';
import { timeLeft } from '../../core/pairings/pairing.ts';
import { Secret } from '../../core/secret.ts';
import { sha256 } from '../../system/secret-hash.ts';
import { SerialQueue } from '../../system/serial-queue.ts';
import { assertConnectionFits } from '../connections/connection-changes.ts';
import type { Connections } from '../connections/connections.ts';
import type { BrokerStore, Environment } from '../ports.ts';
import { type Appliances, applianceExistsFailure } from './appliances.ts';

/** What invites need. */
export interface InvitesContext {
  readonly environment: Pick<Environment, 'clock' | 'random'>;
  readonly store: BrokerStore;
  readonly appliances: Appliances;
  readonly connections: Connections;
}

/** An invite, with its token that is shown only once. */
export interface CreatedInvite {
  readonly invite: Invite;
  readonly token: Secret;
}

/** Bytes of an initial access token. */
const TOKEN_BYTES = 32;
/** The most unused invites at once. */
const MAX_INVITES = 100;

/** The unused invites; each permits one registration. */
export class Invites {
  readonly #context: InvitesContext;
  /** What was read is never applied after something newer. */
  readonly #queue = new SerialQueue();
  #byHash = new Map<string, Invite>();

  private constructor(context: InvitesContext) {
    this.#context = context;
  }

  static async load(context: InvitesContext): Promise<Invites> {
    const invites = new Invites(context);
    await invites.reload();
    return invites;
  }

  /** Takes over what the store has. @throws Failure as {@link Store} */
  reload(): Promise<void> {
    return this.#queue.run(async () => {
      const stored = await this.#context.store.invites();
      this.#byHash = new Map(stored.map((invite) => [invite.hash, invite]));
    });
  }

  /**
   * @throws Failure `name_invalid`, `scope_invalid`, `portal_unknown`, `appliance_exists`, `connection_unknown`,
   * `connection_mismatch`, `not_allowed`, or as
   * {@link Store}
   */
  async create({ name, scope, portal, connection, ttl }: InviteRequest): Promise<CreatedInvite> {
    const { appliances, connections, store, environment } = this.#context;
    const named = name === null ? null : appliances.nameFor(name);
    if (named !== null) await appliances.releaseName(named.name);
    const holder = named === null ? undefined : appliances.find(named.name);
    if (holder !== undefined) throw applianceExistsFailure(holder.name, holder);
    await this.#removeExpired();
    if (this.#byHash.size >= MAX_INVITES) {
      throw new Failure(
        'not_allowed',
        `there are ${MAX_INVITES} unused invites already: wait until some are used or expire`,
      );
    }
    const token = new Secret(environment.random.token(TOKEN_BYTES));
    const wanted = { scope: checkScope(scope), portal: portal === null ? null : connections.resolvePortal(portal) };
    const chosen = connection === null ? null : connections.get(connection);
    if (chosen !== null) assertConnectionFits('the invite', wanted, chosen);
    const invite: Invite = {
      hash: sha256(token.reveal()),
      name: named?.title ?? null,
      scope: chosen?.scope ?? wanted.scope,
      portal: chosen?.portal ?? connections.resolvePortal(portal),
      ...(chosen === null ? {} : { connection: chosen.id }),
      begun: environment.clock.now(),
      lifetime: ttl * 1000,
    };
    await this.#queue.run(async () => {
      await store.saveInvite(invite);
      this.#byHash.set(invite.hash, invite);
    });
    return { invite, token };
  }

  /** The invite of a token, unless it has expired. @param hash of the token */
  find(hash: string): Invite | undefined {
    const invite = this.#byHash.get(hash);
    return invite !== undefined && this.isLive(invite) ? invite : undefined;
  }

  /** Whether it has not expired. */
  isLive(invite: Invite): boolean {
    return timeLeft(invite, this.#context.environment.clock.now()) > 0;
  }

  /** The titles of the appliances that unused invites are for. */
  reservedTitles(): string[] {
    return [...this.#byHash.values()].filter((invite) => this.isLive(invite)).flatMap(({ name }) => name ?? []);
  }

  /** Forgets an invite that was used; the store has removed it already. */
  remove({ hash }: Invite): void {
    this.#byHash.delete(hash);
  }

  async #removeExpired(): Promise<void> {
    for (const invite of [...this.#byHash.values()]) {
      if (this.isLive(invite)) continue;
      await this.#queue.run(async () => {
        await this.#context.store.removeInvite(invite.hash);
        this.#byHash.delete(invite.hash);
      });
    }
  }
}

/** The client that registers: its metadata and its address, see {@link Appliance.waiting}. */
export interface Registrant {
  readonly metadata: ClientMetadata;
  readonly address: string;
}

/** A used invite, and the registration that used it. */
export interface RedeemedInvite {
  readonly invite: Invite;
  /** The appliance's id. */
  readonly appliance: string;
  /** The credentials that the registration issued; if the appliance has others now, they were replaced later. */
  readonly credentials: ClientCredentials;
  readonly registrant: Registrant;
  /** When it was first used, on the boot clock in ms. */
  readonly redeemedAt: number;
  /** Increases with each redeemed invite. */
  readonly sequenceNumber: number;
}

/** An appliance that lost the registration response may retry within this, in ms. */
const RETRY_WINDOW_MS = 600_000;

/**
 * The invites used recently by appliances that have not authenticated since: the response, and the secret in it, may
 * have been lost. Only in memory: after a restart, or if the appliance repeats its registration at another hub of the
 * site, an installer has to remove it.
 */
export class RedeemedInvites {
  readonly #byHash = new Map<string, RedeemedInvite>();
  #count = 0;

  /** The number of invites redeemed so far in this run. */
  get count(): number {
    return this.#count;
  }

  /** @param at when it was first used, on the boot clock in ms */
  add(invite: Invite, { id, credentials }: Appliance, registrant: Registrant, at: number): void {
    for (const [hash, other] of this.#byHash) if (at - other.redeemedAt > RETRY_WINDOW_MS) this.#byHash.delete(hash);
    this.#count += 1;
    this.#byHash.set(invite.hash, {
      invite,
      appliance: id,
      credentials,
      registrant,
      redeemedAt: at,
      sequenceNumber: this.#count,
    });
  }

  /**
   * Finds the registration that used an invite, if the same appliance repeats it.
   * @param seenCount the value of {@link count} when the request arrived: a request from before the first response is
   * no retry
   * @param now on the boot clock, in ms
   */
  find(hash: string, registrant: Registrant, seenCount: number, now: number): RedeemedInvite | undefined {
    const found = this.#byHash.get(hash);
    if (found === undefined || found.sequenceNumber > seenCount || !this.canRetry(found, now)) return undefined;
    return isDeepStrictEqual(registrant, found.registrant) ? found : undefined;
  }

  /** Whether the appliance may still repeat its registration. @param now on the boot clock, in ms */
  canRetry(redeemed: RedeemedInvite, now: number): boolean {
    return this.#byHash.get(redeemed.invite.hash) === redeemed && now - redeemed.redeemedAt <= RETRY_WINDOW_MS;
  }

  /**
   * No registration of this appliance may be repeated any more: it has authenticated, so it has received the response,
   * or it was removed.
   * @param appliance its id
   */
  forget(appliance: string): void {
    for (const [hash, redeemed] of this.#byHash) if (redeemed.appliance === appliance) this.#byHash.delete(hash);
  }
}
