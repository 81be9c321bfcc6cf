import type { Connection } from '../../core/connections/connection.ts';
import type { GrantImport } from '../../core/connections/connection-administration.ts';
import { Failure, messageOf } from '../../core/failure.ts';
import { type Grant, grantFromTokenResponse, hasSameTokens } from '../../core/grants/grant.ts';
import { portalIdentityOf } from '../../core/portals/identity.ts';
import type { Portal } from '../../core/portals/portal.ts';
import type { TokenOutcome, TokenResponse } from '../../core/portals/token-outcome.ts';
import { Secret } from '../../core/secret.ts';
import type { RefreshAttempt } from '../../core/store.ts';
import { sha256 } from '../../system/secret-hash.ts';
import type { Grants } from '../grants/grants.ts';
import type { BrokerStore, ConnectedPortal, Environment } from '../ports.ts';
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

/** An import whose refresh token was sent. */
interface SentImport {
  readonly connection: Connection;
  readonly portal: Portal;
  /** Whether the connection was added for it. */
  readonly isNew: boolean;
  /** The grant that the connection had. */
  readonly former: Grant | null;
  /** What the new grant is made from: obtained when the refresh token was sent, of the generation that is replaced. */
  readonly previous: Grant;
}

/**
 * Takes over grants of other programs. For a connection without a grant, the refresh token is written to disk with an
 * open attempt before it is sent, so after a crash in between it is in doubt like that of any interrupted refresh. A
 * former grant stays where it is until the new one is stored.
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
    const { store, connections, grants, environment, portalOf } = this.#context;
    const { id, name, scope } = connection;
    const connected = portalOf(connection.portal);
    if (connected === undefined)
      throw new Failure('portal_unknown', `the portal ${connection.portal} is not configured`);
    const stored = await store.grants.get(id);
    if ((stored !== null || grants.get(id) !== undefined) && !replace) {
      throw new Failure('not_allowed', `the connection ${name} has a grant already: add --yes to replace it`);
    }
    const problem = await connected.portal.prepareTokenRequest(grants.stopping);
    if (problem !== null) throw importFailure(problem);
    await connections.writeUnwritten();
    assertRunning(grants);
    const isNew = connections.byId(id) === undefined;
    if (isNew && !(await connections.save(() => ({ addedConnections: [connection] })))) {
      throw new Failure('connection_exists', `there is a connection ${name} by now: try again`);
    }
    // No refresh may be under way: its tokens would be lost. There is none of a new connection.
    await grants.get(id)?.refreshing;
    if ((await grants.get(id)?.save()) === false)
      throw new Failure(
        'store_unwritable',
        `the grant of ${name} is only in memory, because the store can't be written`,
      );
    if (!isNew) assertRunning(grants);
    const former = (await store.grants.get(id))?.grant ?? null;
    const sent = environment.clock.now();
    const withToken = (generation: number): Grant => ({
      connection: id,
      generation,
      // There is no access token yet: this one counts as expired, and is never issued.
      accessToken: new Secret(''),
      lifetime: 1,
      obtained: sent,
      accessTokenRejectedAt: null,
      refreshToken,
      scope,
      requestedScope: scope,
      portalTime: null,
      doubt: null,
      refused: null,
      misconfigured: null,
      issuer: portalIdentityOf(connected.identity),
    });
    const attempt = { token: sha256(refreshToken.reveal()), at: sent };
    const { generation, sendBefore } =
      former === null
        ? await this.#writeAhead(connection, withToken, attempt, isNew)
        : { generation: former.generation, sendBefore: await this.#reserve(former, attempt, name) };
    const outcome = await connected.portal
      .refresh(refreshToken, () => sendBefore === null || environment.clock.now().uptime < sendBefore)
      .catch((error: unknown): TokenOutcome => ({ kind: 'ambiguous', detail: messageOf(error) }));
    const sentImport = { connection, portal: connected.portal, isNew, former, previous: withToken(generation) };
    if (outcome.kind !== 'granted') throw await this.#fail(outcome, sentImport);
    const { tokens } = outcome;
    await this.#keep({ ...tokens, refreshToken: tokens.refreshToken ?? refreshToken }, sentImport);
    return connection;
  }

  /**
   * Stores the tokens of an import and uses them from now on, at first only in memory if the store can't be written.
   * @throws Failure `import_failed` if the connection was removed, or got another login meanwhile
   */
  async #keep(
    tokens: TokenResponse & { readonly refreshToken: Secret },
    { connection: { id, name, portal: portalName }, portal, former, previous }: SentImport,
  ): Promise<void> {
    const { grants, environment, referenceClock } = this.#context;
    const sent = previous.obtained;
    const time = referenceClock.timeAt(portalName, sent);
    const grantAfter = (generation: number) =>
      grantFromTokenResponse({ ...previous, generation }, tokens.refreshToken, tokens, sent, time);
    const next = { grant: grantAfter(previous.generation) };
    const replace = () => this.#replace(id, next, former, grantAfter);
    const saved = await replace().catch((error: unknown) => {
      environment.log.error('store_unwritable', { connection: name, error: messageOf(error) });
      return undefined;
    });
    const logSuperseded = () =>
      environment.log.warn('grant_import_failed', { connection: name, outcome: 'superseded', detail: SUPERSEDED });
    if (saved === null) {
      logSuperseded();
      // Another hub may have deleted the former grant, and news of it wait until the import has ended.
      await grants.get(id)?.reload();
      await grants.revoke(id, { name, portal }, tokens);
      throw new Failure(
        'import_failed',
        `${SUPERSEDED}: the imported login is lost, because its refresh token was used`,
      );
    }
    const grant = saved ?? next.grant;
    const saveLater = async () => {
      const savedLater = await replace();
      if (savedLater === null) logSuperseded();
      else if (savedLater.generation !== grant.generation) grants.replace(savedLater);
      return savedLater !== null;
    };
    grants.replace(grant, saved === undefined ? saveLater : null);
    environment.log.info('grant_imported', { connection: name, scope: grant.scope });
    environment.emit({ kind: 'paired', connection: id, at: environment.clock.now(), scope: grant.scope });
  }

  /** Leaves the connection as it was, or with the refresh token if it may have been used. @returns the failure */
  async #fail(
    outcome: Exclude<TokenOutcome, { kind: 'granted' }>,
    { connection: { id, name }, former, isNew, previous }: SentImport,
  ): Promise<Failure> {
    const { store, grants, environment } = this.#context;
    const { kind, detail } = outcome;
    environment.log.warn('grant_import_failed', { connection: name, outcome: kind, detail });
    if (kind === 'ambiguous' && former === null) {
      // A login may have ended meanwhile that could not be stored.
      if (grants.get(id) === undefined) await grants.resumeStored(id);
      return new Failure(
        'import_failed',
        `the portal's answer was lost (${detail}): the connection ${name} has the refresh token, and the hub tries again at the safest time; do not use the token elsewhere, and see "latchkey status"`,
      );
    }
    if (former === null) await this.#undo(id, previous.generation, isNew);
    // If this fails, the next attempt overwrites it, or its lease ends.
    else await store.grants.endAttempt(former).catch(() => false);
    if (kind !== 'ambiguous') return importFailure(outcome);
    return new Failure(
      'import_failed',
      `the portal's answer was lost (${detail}): the connection ${name} keeps the login that it had; import the refresh token again soon, because the portal may have replaced it`,
    );
  }

  /**
   * Writes ahead that something is sent, for a connection that has a grant: not of its refresh token, so after a crash
   * the grant is not in doubt. On a site no other hub refreshes the grant meanwhile.
   * @returns before when it may be sent, on the boot clock in ms; null for no limit
   * @throws Failure `not_allowed`, or as {@link Store}
   */
  async #reserve(former: Grant, attempt: RefreshAttempt, name: string): Promise<number | null> {
    const start = await this.#context.store.grants.beginAttempt(former, attempt);
    if (start.kind === 'begun') return start.sendBefore;
    throw new Failure('not_allowed', `another hub of the site is refreshing ${name}: try again in a few minutes`);
  }

  /**
   * Writes the refresh token ahead, for a connection without a grant.
   * @param withToken the grant that has it, of a generation
   * @returns its generation, and before when it may be sent, as {@link #reserve}
   * @throws Failure `not_allowed`, or as {@link Store}; nothing is kept then
   */
  async #writeAhead(
    { id, name }: Connection,
    withToken: (generation: number) => Grant,
    attempt: RefreshAttempt,
    isNew: boolean,
  ): Promise<{ readonly generation: number; readonly sendBefore: number | null }> {
    let generation = 0;
    const create = (next: number) => {
      generation = next;
      return withToken(next);
    };
    const undo = () => this.#undo(id, generation, isNew);
    const start = await this.#context.store.grants.beginImport(id, create, attempt).catch(async (error: unknown) => {
      await undo();
      throw error;
    });
    if (start.kind === 'begun') return { generation, sendBefore: start.sendBefore };
    await undo();
    throw new Failure('not_allowed', `the grant of ${name} was changed meanwhile: try again`);
  }

  /**
   * Replaces what the connection had. Another hub may have refreshed the former grant if this one was paused, or could
   * not write for long.
   * @param next the grant as it is written next. Its last write may have been committed although that has failed, so
   * nothing is written over a generation after it: another hub may have refreshed that.
   * @param grantAfter creates the grant that replaces the one with this generation
   * @returns the grant as it is stored; null if the former one was deleted, or replaced by another login
   */
  #replace(
    connection: string,
    next: { grant: Grant },
    former: Grant | null,
    grantAfter: (generation: number) => Grant,
  ): Promise<Grant | null> {
    return this.#context.store.saveLogin(connection, ({ generation, grant: current }) => {
      const isWritten = current !== null && generation === next.grant.generation && hasSameTokens(current, next.grant);
      const isNext = generation === next.grant.generation - 1;
      if (!isWritten && !isNext) {
        const isFormer = former !== null && current !== null && current.login?.pairing === former.login?.pairing;
        if (!isFormer || generation > next.grant.generation) return null;
        next.grant = grantAfter(generation);
      }
      return { grant: next.grant, pairing: null };
    });
  }

  /**
   * Leaves everything as it was before the import: the refresh token was not used up.
   * @param generation of the placeholder; 0 if it was not written
   */
  async #undo(id: string, generation: number, isNew: boolean): Promise<void> {
    const { store, connections } = this.#context;
    // Whatever has another generation is of somebody who has logged in meanwhile.
    if (generation > 0) await store.grants.forget(id, generation);
    if (isNew && (await store.grants.get(id)) === null) await connections.save(() => ({ removedConnections: [id] }));
  }
}

/** @throws Failure `hub_stopping` */
function assertRunning({ stopping }: Grants): void {
  if (stopping.aborted) throw new Failure('hub_stopping', 'the hub is stopping: try again in a moment');
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
