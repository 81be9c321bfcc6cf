import type { HistoryEntry } from '../reports/history.ts';
import type { Secret } from '../secret.ts';
import type { ConnectionStatus } from './connection-status.ts';

/** The current access token, as `latchkey token` prints it. */
interface CurrentToken {
  readonly accessToken: Secret;
  readonly expiresIn: number;
  readonly scope: string | null;
}

/** Which token is wanted. */
export interface WantedToken {
  /** Its shortest remaining lifetime, in ms. */
  readonly minTtl: number;
  /** The token that the cloud has refused, which is reported first; null if it has not. */
  readonly rejected: Secret | null;
}

/** Another program's grant, to be taken over. */
export interface GrantImport {
  /** The name of the connection, which is added if there is none. */
  readonly name: string;
  /** Null for the default portal, or that of the existing connection. */
  readonly portal: string | null;
  /** Null for none, or the scope of the existing connection. */
  readonly scope: string | null;
  readonly refreshToken: Secret;
  /** Whether the grant may replace the one that the connection has. */
  readonly replace: boolean;
}

/** The operations on connections. `name` is a connection's; each rejects with `connection_unknown` if there is none. */
export interface ConnectionAdministration {
  /** @throws Failure `name_invalid`, `scope_invalid`, `portal_unknown`, `connection_exists`, `not_allowed` */
  addConnection(name: string, scope: string | null, portal: string | null): Promise<ConnectionStatus>;
  /**
   * Changes the title of a connection; the name and everything else stays.
   * @throws Failure `name_invalid`, `connection_exists`, `connection_declared`, `not_allowed` if it is the own one of an
   * appliance
   */
  renameConnection(name: string, title: string): Promise<ConnectionStatus>;
  /**
   * Removes a connection with its grant. Appliances that use it get connections of their own, without a grant.
   * @param evenIfUsed whether appliances may use it
   * @returns as `unpair`
   * @throws Failure `connection_in_use`, `connection_declared`
   */
  removeConnection(name: string, evenIfUsed: boolean): Promise<boolean | null>;
  /**
   * Takes over another program's grant: refreshes it at once, written ahead.
   * @throws Failure `connection_mismatch`, `not_allowed` if the connection has a grant and `replace` is false,
   * `import_failed` if the portal gave no tokens, with what that means for the refresh token
   */
  importGrant(request: GrantImport): Promise<ConnectionStatus>;
  /**
   * Deletes the grant, and revokes it at the portal if that has an endpoint for it.
   * @returns whether the portal has revoked it; null if there was none
   */
  unpair(name: string): Promise<boolean | null>;
  /**
   * @param wanted left out: any valid token
   * @throws Failure `token_unavailable`
   */
  token(name: string, wanted?: WantedToken): Promise<CurrentToken>;
  /** Forces a refresh, even of a grant in doubt. @throws Failure `token_unavailable` if there is no grant */
  refresh(name: string): Promise<ConnectionStatus>;
  /** The lines, the most recently updated first. */
  history(name: string): Promise<readonly HistoryEntry[]>;
}
