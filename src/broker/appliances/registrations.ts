import { isDeepStrictEqual } from 'node:util';
import type { InviteRequest } from '../../core/administration.ts';
import type { Appliance, ClientCredentials, ConnectionChoice } from '../../core/appliances/appliance.ts';
import type { ClientMetadata, Invite, RegistrationResult } from '../../core/appliances/registration.ts';
import type { Instant } from '../../core/clock.ts';
import { Failure } from '../../core/failure.ts';
import { deriveNamed, type Named, nameFromTitle } from '../../core/name.ts';
import type { Secret } from '../../core/secret.ts';
import { isComparisonCode } from '../../system/comparison-code.ts';
import { sha256 } from '../../system/secret-hash.ts';
import { SerialQueue } from '../../system/serial-queue.ts';
import type { Environment } from '../ports.ts';
import type { Scheduler } from '../time/scheduler.ts';
import type { ApprovedChoice } from './appliances.ts';
import { type CreatedInvite, Invites, type InvitesContext } from './invites.ts';
import { PendingApprovals } from './pending-approvals.ts';

/** What registrations need. */
interface RegistrationContext extends InvitesContext {
  readonly environment: Environment;
  readonly scheduler: Scheduler;
}

/** The longest `Retry-After` if too many appliances wait for approval, in seconds. */
const MAX_RETRY_AFTER = 600;

/** The client that registers: its metadata and its address, see {@link Appliance.waiting}. */
interface Registrant {
  readonly metadata: ClientMetadata;
  readonly address: string;
}

/** A used invite, and the registration that used it. */
interface RedeemedInvite {
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
class RedeemedInvites {
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

/** Registration of appliances (RFC 7591): closed unless an installer opens it or has created an invite. */
export class Registrations {
  readonly #context: RegistrationContext;
  readonly #invites: Invites;
  readonly #redeemedInvites = new RedeemedInvites();
  readonly #pendingApprovals: PendingApprovals;
  /** On the boot clock, in ms; a restart closes registration. */
  #openUntil = Number.NEGATIVE_INFINITY;
  #registeredCount = 0;
  /** Serializes registrations, because each name and invite is for one of them only. */
  readonly #queue = new SerialQueue();

  private constructor(context: RegistrationContext, invites: Invites) {
    this.#context = context;
    this.#invites = invites;
    this.#pendingApprovals = new PendingApprovals(context);
  }

  static async load(context: RegistrationContext): Promise<Registrations> {
    const registrations = new Registrations(context, await Invites.load(context));
    registrations.#pendingApprovals.scheduleExpiry();
    return registrations;
  }

  /** For how many more ms any appliance may register; 0 while registration is closed. */
  get remainingOpenMs(): number {
    return Math.max(0, this.#openUntil - this.#now().uptime);
  }

  /** How many appliances have registered without an invite since it was opened, approved or not. */
  get registeredCount(): number {
    return this.#registeredCount;
  }

  /** Opens registration for `ms` from now. @param ms 0 closes it */
  setOpenFor(ms: number): void {
    if (this.remainingOpenMs === 0 && ms > 0) this.#registeredCount = 0;
    this.#openUntil = this.#now().uptime + ms;
  }

  /** Restores the state of the previous hub. @param openFor in ms @param registeredCount see {@link registeredCount} */
  resume(openFor: number, registeredCount: number): void {
    this.setOpenFor(openFor);
    this.#registeredCount = registeredCount;
  }

  /** @throws Failure as {@link Invites.create} */
  createInvite(request: InviteRequest): Promise<CreatedInvite> {
    return this.#invites.create(request);
  }

  /** Whether this is an unused initial access token. */
  isInvite(token: string): boolean {
    return this.#invites.find(sha256(token)) !== undefined;
  }

  /**
   * @param token the initial access token; null if the request had none
   * @param address see {@link Appliance.waiting}
   * @throws Failure as {@link Appliances.insert}
   */
  register(metadata: ClientMetadata, token: string | null, address: string): Promise<RegistrationResult> {
    const seenCount = this.#redeemedInvites.count;
    return this.#queue.run(() => this.#registerOnce({ metadata, address }, token, seenCount));
  }

  /** An appliance has authenticated: it can't retry its invite any more. @param appliance its id */
  markAuthenticated(appliance: string): void {
    this.#redeemedInvites.forget(appliance);
  }

  /**
   * Another hub has changed appliances or invites.
   * @param removed the ids of the appliances that it has removed
   * @param invites whether invites have changed
   * @throws Failure as {@link Store}
   */
  async applyNews(removed: readonly string[], invites: boolean): Promise<void> {
    for (const id of removed) this.#redeemedInvites.forget(id);
    this.#pendingApprovals.scheduleExpiry();
    if (invites) await this.#invites.reload();
  }

  /**
   * Approves a waiting appliance.
   * @param code the comparison code that the installer saw; null to skip the comparison
   * @throws Failure `not_allowed` if its code differs, or as {@link Appliances.approve}
   */
  async approve(appliance: Appliance, code: string | null, choice?: ApprovedChoice): Promise<Appliance> {
    const { name, clientId, waiting } = appliance;
    if (code !== null && waiting !== null && !isComparisonCode(code, clientId)) {
      throw new Failure(
        'not_allowed',
        `the code of ${name} differs, so it was not approved: another appliance may have taken the name; "latchkey appliance list" shows the codes`,
      );
    }
    const approved = await this.#context.appliances.approve(appliance, choice);
    this.#pendingApprovals.scheduleExpiry();
    return approved;
  }

  /** A name that is taken, or an invite that is not known, may be due to what another hub has changed meanwhile. */
  async #registerOnce(registrant: Registrant, token: string | null, seenCount: number): Promise<RegistrationResult> {
    let refused: RegistrationResult = { kind: 'token_refused' };
    const registered = await this.#context.connections.retryOnce(async () => {
      const result = await this.#register(registrant, token, seenCount);
      if (result.kind !== 'invalid') return result;
      refused = result;
      return null;
    });
    return registered ?? refused;
  }

  async #register(registrant: Registrant, token: string | null, seenCount: number): Promise<RegistrationResult> {
    if (token === null) return this.remainingOpenMs > 0 ? this.#registerOpen(registrant) : { kind: 'closed' };
    const hash = sha256(token);
    const redeemed = this.#redeemedInvites.find(hash, registrant, seenCount, this.#now().uptime);
    const invite = this.#invites.find(hash) ?? redeemed?.invite;
    if (invite === undefined || !this.#invites.isLive(invite)) return { kind: 'token_refused' };
    if (redeemed !== undefined) return this.#reissueCredentials(redeemed);
    const registration = await this.#registerInvited(registrant, invite);
    if (registration.kind === 'registered' || registration.kind === 'token_refused') this.#invites.remove(invite);
    return registration;
  }

  async #registerOpen({ metadata, address }: Registrant): Promise<RegistrationResult> {
    const fullForMs = this.#pendingApprovals.fullForMs(address);
    if (fullForMs > 0) return { kind: 'full', retryAfter: Math.min(MAX_RETRY_AFTER, Math.ceil(fullForMs / 1000)) };
    const registration = await this.#insertAppliance(metadata, {
      named: this.#chosenName(metadata),
      choice: { connections: [], scope: metadata.scope, portal: null },
      waitsFrom: address,
    });
    if (registration.kind === 'registered') this.#registeredCount += 1;
    this.#pendingApprovals.scheduleExpiry();
    return registration;
  }

  /** The response was lost, and the secret with it: the appliance keeps its name and id, and gets a new secret. */
  async #reissueCredentials(redeemed: RedeemedInvite): Promise<RegistrationResult> {
    const { invite, appliance: id, registrant, redeemedAt: at } = redeemed;
    const { environment } = this.#context;
    const { credentials, secret } = this.#createCredentials(registrant.metadata);
    const updated = await this.#replaceCredentials(id, redeemed.credentials, credentials, () =>
      this.#canRetry(redeemed),
    );
    if (updated === null) return { kind: 'token_refused' };
    if (!this.#canRetry(redeemed)) {
      // It authenticated with the old credentials while the new ones were written.
      await this.#replaceCredentials(id, credentials, redeemed.credentials);
      return { kind: 'token_refused' };
    }
    this.#redeemedInvites.add(invite, updated, registrant, at);
    const { clientId, name } = updated;
    const { scope } = this.#context.connections.ofAppliance(updated);
    environment.log.info('appliance_registered', {
      appliance: name,
      client_id: clientId,
      software_id: registrant.metadata.softwareId,
      waits_for_approval: false,
      repeated: true,
    });
    return { kind: 'registered', clientId, name, scope, secret, needsApproval: false };
  }

  /** Whether the appliance may still retry its invite. */
  #canRetry(redeemed: RedeemedInvite): boolean {
    return this.#redeemedInvites.canRetry(redeemed, this.#now().uptime) && this.#invites.isLive(redeemed.invite);
  }

  /** @returns null if the appliance was removed, has other credentials than `former`, or is to keep them */
  async #replaceCredentials(
    id: string,
    former: ClientCredentials,
    credentials: ClientCredentials,
    isWanted = () => true,
  ): Promise<Appliance | null> {
    const refused = new Failure('not_allowed', 'the appliance keeps its credentials');
    try {
      return await this.#context.appliances.update(id, (current) => {
        if (!isDeepStrictEqual(current.credentials, former) || !isWanted()) throw refused;
        return { ...current, credentials };
      });
    } catch (error) {
      if (error === refused || (error instanceof Failure && error.code === 'appliance_unknown')) return null;
      throw error;
    }
  }

  async #registerInvited(registrant: Registrant, invite: Invite): Promise<RegistrationResult> {
    const { metadata } = registrant;
    const { appliances, connections, store } = this.#context;
    const named = invite.name === null ? this.#chosenName(metadata) : appliances.nameFor(invite.name);
    if (invite.name !== null) await appliances.releaseName(named.name);
    if (appliances.find(named.name) !== undefined) return nameTakenResult(named.name);
    if (!connections.hasPortal(invite.portal)) {
      const description = `this invite is for the portal ${invite.portal}, which is no longer configured: ask an installer for another invite (latchkey invite)`;
      return { kind: 'invalid', description };
    }
    const shared = invite.connection === undefined ? undefined : connections.byId(invite.connection);
    const connection = shared === undefined || shared.damaged ? null : shared.name;
    if (connection === null && invite.connection !== undefined) {
      const description =
        'the connection of this invite was removed or damaged: ask an installer for another invite (latchkey invite)';
      return { kind: 'invalid', description };
    }
    const choice =
      connection === null
        ? { connections: [], scope: invite.scope ?? metadata.scope, portal: invite.portal }
        : { connections: [connection], scope: null, portal: null };
    const options = { named, choice, waitsFrom: null, invite: invite.hash };
    const registration = await this.#insertAppliance(metadata, options);
    if (registration.kind === 'registered') {
      const appliance = appliances.byId(registration.clientId);
      if (appliance !== undefined) this.#redeemedInvites.add(invite, appliance, registrant, this.#now().uptime);
    }
    if (registration.kind !== 'invalid') return registration;
    // The store disagreed: a copy of the invite was used already, or the name is taken.
    const remaining = await store.invites.all();
    return remaining.some(({ hash }) => hash === invite.hash) ? registration : { kind: 'token_refused' };
  }

  /** Credentials from its own keys, or a new secret. */
  #createCredentials({ keys }: ClientMetadata): {
    readonly credentials: ClientCredentials;
    readonly secret: Secret | null;
  } {
    if (keys !== null) return { credentials: { kind: 'keys', keys }, secret: null };
    const secret = this.#context.appliances.generateSecret();
    return { credentials: { kind: 'secret', hash: sha256(secret.reveal()) }, secret };
  }

  async #insertAppliance(
    metadata: ClientMetadata,
    options: {
      readonly named: Named;
      readonly choice: ConnectionChoice;
      /** The address of an appliance that needs approval; null if it needs none. */
      readonly waitsFrom: string | null;
      readonly invite?: string;
    },
  ): Promise<RegistrationResult> {
    const { appliances, environment } = this.#context;
    const { named, choice, waitsFrom, invite } = options;
    const { name } = named;
    const needsApproval = waitsFrom !== null;
    const { credentials, secret } = this.#createCredentials(metadata);
    const { softwareId } = metadata;
    const id = environment.random.uuid();
    const [connection] = appliances.chooseConnections(id, named, choice);
    const appliance: Appliance = {
      id,
      clientId: id,
      ...named,
      connection: connection.id,
      credentials,
      origin: 'registered',
      waiting: waitsFrom === null ? null : { since: this.#now(), from: waitsFrom },
      softwareId,
    };
    if (!(await appliances.insert(appliance, connection, invite))) return nameTakenResult(name);
    environment.log.info('appliance_registered', {
      appliance: name,
      client_id: id,
      software_id: softwareId,
      address: waitsFrom ?? undefined,
      waits_for_approval: needsApproval,
      repeated: false,
    });
    return { kind: 'registered', clientId: id, name, scope: connection.scope, secret, needsApproval };
  }

  /** The title and the name of an appliance that chooses them: no other appliance, connection or invite is called so. */
  #chosenName({ clientName }: ClientMetadata): Named {
    const { appliances, connections } = this.#context;
    const names = new Set([
      ...[...appliances.list(), ...connections.list()].flatMap(({ name, title }) => [name, nameFromTitle(title)]),
      ...this.#invites.reservedTitles().map(nameFromTitle),
    ]);
    return deriveNamed(clientName ?? '', 'appliance', (one) => names.has(one));
  }

  #now(): Instant {
    return this.#context.environment.clock.now();
  }
}

function nameTakenResult(name: string): RegistrationResult {
  const description = `this hub already has an appliance ${name}: ask an installer to remove it, or for another invite (latchkey invite)`;
  return { kind: 'invalid', description };
}
