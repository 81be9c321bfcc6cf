import type { Instant } from '../../core/clock.ts';
import type { Connection } from '../../core/connections/connection.ts';
import type { GrantImport } from '../../core/connections/connection-administration.ts';
import { Failure, messageOf } from '../../core/failure.ts';
import { type Grant, grantFromTokenResponse } from '../../core/grants/grant.ts';
import type { TokenOutcome } from '../../core/grants/token-outcome.ts';
import { portalIdentityOf } from '../../core/portals/identity.ts';
import { Secret } from '../../core/secret.ts';
import { sha256 } from '../../system/secret-hash.ts';
import type { Environment } from '../environment.ts';
import type { Grants } from '../grants/grants.ts';
import type { ManagedGrant } from '../grants/managed-grant.ts';
import { emitPaired } from '../pairings/pairing-context.ts';
import type { BrokerStore, ConnectedPortal } from '../ports.ts';
import type { ReferenceClock } from '../time/reference-clock.ts';
import type { Connections } from './connections.ts';

/** What imports need. */
interface ImportContext {
  readonly environment: Environment;
  readonly store: BrokerStore;
  readonly connections: Connections;
  readonly grants: Grants;
  readonly referenceClock: Pick<ReferenceClock, 'timeAt'>;
  portalOf(portal: string): ConnectedPortal | undefined;
}

/**
 * Takes over grants of other programs. The refresh token is written to disk with an open attempt before it is sent, so
 * after a crash in between it is in doubt like that of any interrupted refresh.
 */
export class GrantImports implements AsyncDisposable {
  readonly #context: ImportContext;
  readonly #inFlight = new Map<string, Promise<Connection>>();

  constructor(context: ImportContext) {
    this.#context = context;
  }

  /**
   * Refreshes another program's refresh token at once, and keeps the tokens that it gives.
   * @param connection the stored connection, or a new one, which is added
   * @param replace whether a grant that the connection has may be replaced
   * @throws Failure `not_allowed`, `import_failed`, or as {@link Store}
   */
  async run(
    connection: Connection,
    { refreshToken, replace }: Pick<GrantImport, 'refreshToken' | 'replace'>,
  ): Promise<Connection> {
    const { name } = connection;
    if (this.#inFlight.has(name)) {
      throw new Failure('not_allowed', `an import to the connection ${name} is under way: wait until it has ended`);
    }
    const imported = this.#context.grants.importing(connection.id, () => this.#run(connection, refreshToken, replace));
    this.#inFlight.set(name, imported);
    try {
      return await imported;
    } finally {
      this.#inFlight.delete(name);
    }
  }

  /** Waits for the imports under way. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled(this.#inFlight.values());
  }

  async #run(connection: Connection, refreshToken: Secret, replace: boolean): Promise<Connection> {
    const { store, connections, grants, environment, referenceClock, portalOf } = this.#context;
    const { id, name, scope } = connection;
    const connected = portalOf(connection.portal);
    if (connected === undefined)
      throw new Failure('portal_unknown', `the portal ${connection.portal} is not configured`);
    const stored = await store.grant(id);
    if ((stored !== null || grants.get(id) !== undefined) && !replace) {
      throw new Failure('not_allowed', `the connection ${name} has a grant already: add --yes to replace it`);
    }
    const problem = await connected.portal.prepareTokenRequest(grants.stopping);
    if (problem !== null) throw importFailure(problem);
    const isNew = connections.byId(id) === undefined;
    if (isNew && !(await connections.save(() => ({ addedConnections: [connection] })))) {
      throw new Failure('connection_exists', `there is a connection ${name} by now: try again`);
    }
    // No refresh may be under way: its tokens would be lost. One that begins later finds the placeholder, and is not sent.
    let generation: number;
    do {
      await grants.get(id)?.refreshing;
      generation = await store.generation(id);
    } while ((grants.get(id)?.refreshing ?? null) !== null);
    const sent = environment.clock.now();
    const reserved = await this.#reserve(connection, sent);
    const former = newerOf(reserved, grants.get(id)) ?? stored?.grant ?? null;
    const placeholder: Grant = {
      connection: id,
      generation: generation + 1,
      // There is no access token yet: this one counts as expired, and is never issued.
      ...{ accessToken: new Secret(''), lifetime: 1, obtained: sent, accessTokenRejectedAt: null },
      ...{ refreshToken, scope, requestedScope: scope, portalTime: null },
      ...{ doubt: null, refused: null, misconfigured: null },
      issuer: portalIdentityOf(connected.identity),
    };
    const attempt = { token: sha256(refreshToken.reveal()), at: sent };
    // Requested together, so that a store on a card writes both in one transaction.
    const replaced = store.replaceGrant(placeholder);
    const begun = (store.site === null ? Promise.resolve() : replaced).then(() =>
      store.beginAttempt(placeholder, attempt),
    );
    const [replacing, starting] = await Promise.allSettled([replaced, begun]);
    const failed = [replacing, starting].find((write) => write.status === 'rejected');
    const start = starting.status === 'fulfilled' && starting.value.kind === 'begun' ? starting.value : null;
    if (start === null || replacing.status === 'rejected' || !replacing.value) {
      await this.#undo(placeholder, isNew, former);
      throw failed?.reason ?? new Failure('not_allowed', `the grant of ${name} was changed meanwhile: try again`);
    }
    const { sendBefore } = start;
    const outcome = await connected.portal
      .refresh(refreshToken, () => sendBefore === null || environment.clock.now().uptime < sendBefore)
      .catch((error: unknown): TokenOutcome => ({ kind: 'ambiguous', detail: messageOf(error) }));
    if (outcome.kind === 'granted') {
      const { tokens } = outcome;
      const time = referenceClock.timeAt(connection.portal, sent);
      const grant = grantFromTokenResponse(placeholder, tokens.refreshToken ?? refreshToken, tokens, sent, time);
      const saved = await store.replaceGrant(grant).catch((error: unknown) => {
        environment.log.error('store_unwritable', { connection: name, error: messageOf(error) });
        return null;
      });
      if (saved === false) {
        environment.log.warn('grant_import_failed', { connection: name, outcome: 'superseded', detail: SUPERSEDED });
        throw new Failure(
          'import_failed',
          `${SUPERSEDED}: the imported login is lost, because its refresh token was used`,
        );
      }
      grants.replace(grant, saved === null ? () => store.replaceGrant(grant) : null);
      environment.log.info('grant_imported', { connection: name, scope: grant.scope });
      emitPaired(environment, grant);
      return connection;
    }
    const { kind, detail } = outcome;
    environment.log.warn('grant_import_failed', { connection: name, outcome: kind, detail });
    if (kind === 'ambiguous') {
      await grants.resumeStored(id);
      throw new Failure(
        'import_failed',
        `the portal's answer was lost (${detail}): the connection ${name} has the refresh token, and the hub tries again at the safest time; do not use the token elsewhere, and see "latchkey status"`,
      );
    }
    await this.#undo(placeholder, isNew, former);
    throw importFailure(outcome);
  }

  /**
   * On a site: makes sure that no other hub refreshes the grant that is to be replaced, because its tokens would be
   * lost.
   * @returns the grant as it is stored; null if there is none, and without a site
   * @throws Failure `not_allowed`
   */
  async #reserve({ id, name }: Connection, at: Instant): Promise<Grant | null> {
    const { store } = this.#context;
    const stored = store.site === null ? null : await store.grant(id);
    if (stored === null) return null;
    const token = sha256(stored.grant.refreshToken?.reveal() ?? '');
    const { kind } = await store.beginAttempt(stored.grant, { token, at });
    if (kind === 'begun') return stored.grant;
    throw new Failure('not_allowed', `another hub of the site is refreshing ${name}: try again in a few minutes`);
  }

  /**
   * Leaves everything as it was before the import: the refresh token was not used up.
   * @param former the grant before the import; null if there was none
   */
  async #undo({ connection: id, generation }: Grant, isNew: boolean, former: Grant | null): Promise<void> {
    const { store, connections, grants } = this.#context;
    // Otherwise the placeholder was not written, or somebody has logged in meanwhile.
    const hasPlaceholder = (await store.generation(id)) === generation;
    if (former !== null) {
      const restored = { ...former, generation: generation + 1 };
      if (!hasPlaceholder) await store.endAttempt(former);
      else if (await store.replaceGrant(restored)) grants.replace(restored);
      return;
    }
    if (hasPlaceholder) await store.forgetGrant(id, generation);
    if (isNew) await connections.save(() => ({ removedConnections: [id] }));
  }
}

/**
 * The newer of two versions of a grant.
 * @param stored as another hub may have written it
 * @param held what this hub could not write yet, or had no news of; undefined if it holds none
 * @returns null if there is neither
 */
function newerOf(stored: Grant | null, held: ManagedGrant | undefined): Grant | null {
  if (held === undefined || stored === null) return stored ?? held?.grant ?? null;
  const isHeldNewer = held.hasUnwrittenEnd || held.grant.generation > stored.generation;
  return isHeldNewer ? held.grant : stored;
}

function importFailure({ kind, detail }: Exclude<TokenOutcome, { kind: 'granted' | 'ambiguous' }>): Failure {
  return new Failure('import_failed', `${IMPORT_FAILURES[kind]} (${detail}); nothing was kept`);
}

const SUPERSEDED = 'the connection was removed or got another login meanwhile';

/** Why an import failed, without a doubt about the refresh token. */
const IMPORT_FAILURES = {
  not_sent: 'the portal could not be reached, so the refresh token was not used: try again',
  deferred: 'the portal asks to come back later, so the refresh token was not used: try again later',
  refused:
    'the portal does not accept this refresh token: it was used or has ended, or it belongs to another client_id; connect with "latchkey pair" instead',
  misconfigured: "the portal does not accept the hub's client_id and client secret: correct them in the configuration",
  blocked:
    "something before the portal refuses the hub, so the refresh token was not used: check the portal's addresses and any proxy on the way",
  rejected: 'the portal rejects the request',
} as const;
