import type { HubConditionCode } from './hub-conditions.ts';

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

/** A notice about a connection, or about an appliance that waits for approval. */
export interface SubjectNoticeRecord {
  /** When it is sent, and what it means, in Markdown, for docs/notices.md. */
  readonly meaning: string;
  /** What a person can do, in Markdown, for docs/notices.md. */
  readonly advice: string;
  /** A notice with a higher number replaces an open one with a lower number; one of severity `error` any other. */
  readonly priority: number;
  /** It is sent when it begins and when it is over, and not repeated daily; left out if it is. */
  readonly isReportedOnce?: true;
  /**
   * It only points to something while all is well, and says this when that is over. Left out if something is wrong, and
   * the connection works again when it is over.
   */
  readonly reminderOver?: (subject: string) => string;
}

const records = {
  pairing_needed: {
    meaning:
      'at once: the portal permanently refused the grant, the access token of a login without a refresh token has ended, the stored grant or connection was damaged, or the configuration names a portal other than the one that issued the grant',
    advice: "log in again (or change the configuration back): on the hub's page, or `latchkey pair NAME`",
    // An open one is replaced if there is any new problem.
    priority: -1,
  },
  misconfigured: {
    meaning:
      "at once: the portal does not accept the hub's `client_id` and client secret; the message names the key and the file",
    advice:
      'correct the one that is wrong, and run `latchkey reload`; if systemd passes the secret to the service, restart the hub',
    priority: 1,
  },
  portal_missing: {
    meaning:
      'at once: the configuration no longer has the portal that the message names, as after a restore on another machine',
    advice: 'add the portal again, and run `latchkey reload`',
    priority: 1,
  },
  token_ending: {
    meaning:
      'refreshes have failed for an hour, and the current access token has expired or has less than a tenth of its lifetime left',
    advice: 'check the internet connection, or what the message names',
    priority: 3,
  },
  refresh_failing: {
    meaning: 'refreshes have failed for a day, but the current access token is still valid',
    advice: 'the same, before the token expires',
    priority: 2,
  },
  answer_lost: {
    meaning:
      'the answer to a refresh was lost, and refreshes have failed for a minute; the portal may no longer accept the grant. If this lasts, `token_ending` or `refresh_failing` replaces it',
    advice: 'nothing yet',
    priority: 0,
    isReportedOnce: true,
  },
  login_ending: {
    meaning:
      "the portal soon ends this login, however often it is used: a quarter of the login's lifetime before, but at least a day and at most two weeks ([details](decisions/login-ends.md)). At once if the portal gave no refresh token: the login ends with its access token",
    advice:
      "add the scope `offline_access` if the message says so; log in again before the time that the message names: on the hub's page, or `latchkey pair NAME`",
    priority: -1,
    isReportedOnce: true,
    reminderOver: (subject) => `The login of ${subject} no longer ends soon`,
  },
  permissions_missing: {
    meaning:
      'at once: at the login, the portal granted fewer permissions than were asked for, as when somebody unticks one. Appliances get the token. The message names what is missing',
    advice: 'if it is needed, log in again and allow it',
    priority: -2,
    isReportedOnce: true,
    reminderOver: (subject) => `${subject} no longer lacks permissions`,
  },
  approval_needed: {
    meaning: 'at once: an appliance has registered. If many wait for approval, only the first five are reported',
    advice: 'approve it, or remove it',
    priority: 4,
  },
} satisfies Readonly<Record<string, SubjectNoticeRecord>>;

export type SubjectNoticeCode = keyof typeof records;

/** Every notice about a connection or an appliance, by its code. */
export const SUBJECT_NOTICES: Readonly<Record<SubjectNoticeCode, SubjectNoticeRecord>> = records;
