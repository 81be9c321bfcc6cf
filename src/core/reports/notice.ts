/**
 * Something that a person must act on, or should know before that becomes necessary.
 *
 * - `pairing_needed`: somebody must log in again;
 * - `misconfigured`: the portal does not accept the hub's own credentials, which does not resolve itself;
 * - `token_ending`: refreshes have failed for an hour, and the current access token has expired or expires soon;
 * - `refresh_failing`: refreshes have failed for a day;
 * - `answer_lost`: the portal's answer to a refresh was lost, so that the grant may be dead; sent once;
 * - `login_ending`: the login ends by itself soon, and only a new login prevents that; sent once;
 * - `permissions_missing`: the portal granted fewer permissions than were asked for; sent once;
 * - `approval_needed`: an appliance has registered itself and waits for an installer;
 * - `wrong_setup_codes`: somebody typed too many wrong setup codes on the hub's page;
 * - the others concern the hub as a whole, as in `status`.
 */
export type NoticeCode = (typeof NOTICE_CODES)[number];

/** The codes of problems of the hub as a whole, in `status` and as notices. */
export const HUB_PROBLEM_CODES = [
  'certificate_expired',
  'certificate_expiring',
  'hub_id_taken',
  'hub_missing',
  'hub_name_claimed',
  'not_announced',
  'portal_moved',
  'database_unavailable',
  'store_changed',
  'store_recovered',
  'store_slow',
  'store_unwritable',
  'store_volatile',
] as const;

/** All notice codes. */
export const NOTICE_CODES = [
  'pairing_needed',
  'misconfigured',
  'token_ending',
  'refresh_failing',
  'answer_lost',
  'login_ending',
  'permissions_missing',
  'approval_needed',
  ...HUB_PROBLEM_CODES,
  'wrong_setup_codes',
] as const;

/** An open notice, as in `status`. */
export interface Notice {
  readonly code: NoticeCode;
  /** `error`: it stays broken until a person acts; `warning`: it may resolve itself. */
  readonly severity: 'error' | 'warning';
  /** The appliance's name; null if the notice is about the hub as a whole, or a connection with another name. */
  readonly appliance: string | null;
  /** The connection's name; null if the notice is about the hub as a whole. */
  readonly connection: string | null;
  /** The names of all appliances that it concerns. */
  readonly appliances: readonly string[];
  /** One sentence each, in English: what is wrong, and what to do. */
  readonly message: string;
  readonly what_to_do: string;
  /** RFC 3339 UTC. */
  readonly since: string;
}

/** A message about a notice: it is new, it is still open a day after the last message, or it is over. */
export interface NoticeReport {
  readonly status: 'raised' | 'repeated' | 'resolved';
  /** `test`: nothing is wrong, somebody tests the delivery. */
  readonly notice: NoticeCode | 'test';
  readonly severity: Notice['severity'];
  readonly appliance: string | null;
  readonly connection: string | null;
  readonly appliances: readonly string[];
  readonly message: string;
  readonly what_to_do: string;
  /** RFC 3339 UTC: when the problem began. */
  readonly since: string;
}

/** The hub that sends a notice; `page` is the address of the hub's page on the home network. */
export interface NoticeSender {
  readonly id: string;
  readonly name: string;
  readonly page: string;
}

/** A report as a hook gets it, as JSON. */
export type NoticeMessage = NoticeReport & { readonly hub: NoticeSender };

/** The result of a test of a hook; `detail` in words, without any secret. */
export interface HookTestResult {
  readonly hook: 'command' | 'webhook';
  /** The command's program, or the webhook's origin: the rest may be secret. */
  readonly target: string;
  readonly ok: boolean;
  readonly detail: string;
}
