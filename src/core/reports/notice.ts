/**
 * What a person has to see to, or should know before it comes to that.
 *
 * - `pairing_needed`: somebody must log in again;
 * - `misconfigured`: the portal does not take the hub's own credentials, which does not pass by itself;
 * - `token_ending`: refreshes have failed for an hour, and the token at hand has ended or is about to;
 * - `refresh_failing`: they have failed for a day;
 * - `answer_lost`: the portal's answer to a refresh was lost, so that the grant may turn out to be dead; told once;
 * - `approval_needed`: an appliance has introduced itself and waits for an installer;
 * - `wrong_setup_codes`: too many wrong setup codes were typed at the installer's page;
 * - the others are of the hub as a whole, as `status` has them.
 */
export type NoticeCode = (typeof NOTICE_CODES)[number];

/** The codes of what is wrong with the hub as a whole, in `status` and as notices. */
export const HUB_PROBLEM_CODES = [
  'hub_id_taken',
  'hub_name_claimed',
  'not_announced',
  'store_changed',
  'store_recovered',
  'store_unwritable',
] as const;

/** The codes of all notices. */
export const NOTICE_CODES = [
  'pairing_needed',
  'misconfigured',
  'token_ending',
  'refresh_failing',
  'answer_lost',
  'approval_needed',
  ...HUB_PROBLEM_CODES,
  'wrong_setup_codes',
] as const;

/** A notice that stands, as `status` has it. */
export interface Notice {
  readonly code: NoticeCode;
  /** `error`: nothing gets better until a person acts; `warning`: it may. */
  readonly severity: 'error' | 'warning';
  /** The appliance's name; null where it is of the hub as a whole. */
  readonly appliance: string | null;
  /** One sentence each, in English: what is wrong, and what to do. */
  readonly message: string;
  readonly what_to_do: string;
  /** RFC 3339 UTC. */
  readonly since: string;
}

/** What is told of a notice: that it is new, that it still stands a day after it was told last, or that it is over. */
export interface NoticeReport {
  readonly status: 'raised' | 'repeated' | 'resolved';
  /** `test`: nothing is wrong, somebody tries whether it arrives. */
  readonly notice: NoticeCode | 'test';
  readonly severity: Notice['severity'];
  readonly appliance: string | null;
  readonly message: string;
  readonly what_to_do: string;
  /** RFC 3339 UTC: when what is wrong began. */
  readonly since: string;
}

/** The hub that tells it; `page` is the address of the installer's page on the home network. */
export interface NoticeSender {
  readonly id: string;
  readonly name: string;
  readonly page: string;
}

/** A report as it leaves the house: what a hook is given as JSON. */
export type NoticeMessage = NoticeReport & { readonly hub: NoticeSender };

/** What came of a try to have a message carried out of the house; `detail` in words, without any secret. */
export interface HookTestResult {
  readonly hook: 'command' | 'webhook';
  /** The command's program, or the webhook's origin: the rest may be secret. */
  readonly target: string;
  readonly ok: boolean;
  readonly detail: string;
}
