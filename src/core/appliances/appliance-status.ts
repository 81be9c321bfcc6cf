import type { LoginStatus } from '../connections/connection-status.ts';
import type { Named } from '../name.ts';
import type { StatusField } from '../status-field.ts';
import type { TokenCounts, UnusualUsage } from './usage.ts';

/** An appliance in `status`, with the status of a connection; instants in RFC 3339 UTC. */
export interface ApplianceStatus extends LoginStatus, Named {
  readonly clientId: string;
  /** The name of the connection that it uses; of several, the one that most needs somebody. */
  readonly connection: string;
  /** The names of all that it uses; left out if it is only one. */
  readonly connections?: readonly string[];
  /** The hub gives it tokens whatever scope its requests name; left out otherwise. */
  readonly ignoresScope?: true;
  /** When it got its last token, by the hub's current clock; null if it never did, or if that was lost. */
  readonly lastToken: string | null;
  /** How many tokens it got. */
  readonly tokens: TokenCounts;
  /** The tokens that it got of each of several connections; left out if it uses only one. */
  readonly usage?: readonly ConnectionUsage[];
  /** Why its use of a connection is pointed out; left out if it is as usual. */
  readonly unusualUsage?: UnusualUsage;
  /** The title of that connection, if the appliance uses several. */
  readonly unusualConnection?: string;
  /** Left out if it last asked with the right credentials, or has not asked since the hub was started. */
  readonly refused?: RefusedRequestsStatus;
  /** The configuration declares it, and only the configuration can remove it; left out otherwise. */
  readonly declared?: true;
  /** It has registered itself, and can do nothing until an installer approves it; left out if it does not wait. */
  readonly waitingForApproval?: PendingApproval;
  /**
   * Nobody can request its tokens: it is no longer declared, or `credentialsDamaged`; left out if it has credentials.
   */
  readonly withoutCredentials?: true;
  /** It has no credentials, because its entry in the store was damaged; left out otherwise. */
  readonly credentialsDamaged?: true;
}

/** What an appliance got of one of its connections; `lastToken` as in {@link ApplianceStatus}. */
interface ConnectionUsage {
  /** Its name. */
  readonly connection: string;
  readonly title: string;
  readonly lastToken: string | null;
  readonly tokens: TokenCounts;
}

/** How surfaces show fields of an appliance, besides those of its connection. */
export const APPLIANCE_FIELDS = {
  lastToken: {
    member: 'last_token',
    kind: 'instant',
    isOnPage: true,
    isUsage: true,
    metric: {
      name: 'latchkey_appliance_last_token_timestamp_seconds',
      help: "Unix time at which the appliance got its last access token, by the hub's clock, also before a restart; absent if it never did.",
    },
  },
} as const satisfies Partial<Record<keyof ApplianceStatus, StatusField>>;

/** The requests of an appliance that the hub has refused because of their credentials. */
export interface RefusedRequestsStatus {
  /** When the first came, RFC 3339 UTC. */
  readonly since: string;
  readonly count: number;
  /** Why the last was refused, as part of a sentence. */
  readonly reason: string;
  /** The IP address that the last came from. */
  readonly address: string;
}

/** An appliance that registered itself and waits for an installer; `since` in RFC 3339 UTC. */
export interface PendingApproval {
  readonly since: string;
  readonly softwareId: string | null;
  /** The code that its registration response contains too: the installer compares the two. */
  readonly comparisonCode: string;
  /** The IP address that it registered from. */
  readonly address: string;
}
