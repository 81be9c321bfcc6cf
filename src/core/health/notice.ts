import type { HubConditionCode } from './hub-conditions.ts';
import type { SubjectNoticeCode } from './subject-notices.ts';

/** Something that a person must act on, or should know before that becomes necessary; docs/notices.md lists them. */
export type NoticeCode = SubjectNoticeCode | HubConditionCode;

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
export interface NoticeReport extends Omit<Notice, 'code'> {
  readonly status: 'raised' | 'repeated' | 'resolved';
  /** `test`: nothing is wrong, somebody tests the delivery. */
  readonly notice: NoticeCode | 'test';
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
