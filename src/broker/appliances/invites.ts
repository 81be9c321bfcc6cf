import type { InviteRequest } from '../../core/administration.ts';
import type { Invite } from '../../core/appliances/registration.ts';
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
      const stored = await this.#context.store.invites.all();
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
      await store.invites.save(invite);
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
        await this.#context.store.invites.remove(invite.hash);
        this.#byHash.delete(invite.hash);
      });
    }
  }
}
