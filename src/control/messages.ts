import * as v from 'valibot';
import { APPLIANCE_STATES } from '../core/administration.ts';
import { APPLIANCE_CONDITION_CODES, HUB_CONDITION_CODES, SEVERITIES } from '../core/health/condition.ts';
import { FAILURE_REASONS } from '../core/pairings/pairing.ts';
import { LEFT_OUT_REASONS } from '../core/pairings/round.ts';
import { HISTORY_KINDS } from '../core/reports/history.ts';
import { HUB_PROBLEM_CODES, NOTICE_CODES } from '../core/reports/notice.ts';
import { PROBLEM_CODES } from '../core/reports/problem.ts';

/**
 * The answers on the control socket, which are what `--json` prints. Times in seconds, instants in RFC 3339 UTC. What each member
 * means is said at the types of src/core that they are made of.
 */

const text = v.string();
const textOrNull = v.nullable(text);
const number = v.number();
const left = v.exactOptional;

const reason = v.picklist(FAILURE_REASONS);

const problem = v.object({ code: v.picklist(PROBLEM_CODES), message: text, since: text });

/** An appliance, in `status`. */
export const applianceAnswer = v.object({
  name: text,
  client_id: text,
  state: v.picklist(APPLIANCE_STATES),
  scope: textOrNull,
  expires_in: v.nullable(number),
  refresh_in: v.nullable(number),
  last_refresh: textOrNull,
  problem: v.nullable(problem),
  portal: text,
  account: textOrNull,
  authorize_url: left(text),
  declared: left(v.literal(true)),
  waiting_for_approval: left(
    v.object({ since: text, software_id: textOrNull, comparison_code: text, address: textOrNull }),
  ),
  without_credentials: left(v.literal(true)),
  credentials_damaged: left(v.literal(true)),
  pairing_failed: left(v.object({ reason, message: text, at: text })),
  wanted_scope: left(textOrNull),
});
export type ApplianceAnswer = v.InferOutput<typeof applianceAnswer>;

const hubAnswer = v.object({
  id: text,
  name: text,
  version: text,
  address: textOrNull,
  http_port: number,
  https_port: number,
  metrics_port: left(number),
  ca_fingerprint: text,
  ca_rotation: left(v.object({ old_fingerprint: text, until: textOrNull })),
  uptime: number,
  config_file: left(text),
  test_mode: left(v.literal(true)),
  registration_open_for: left(number),
  registration_asked: left(number),
  problems: left(v.array(v.object({ code: v.picklist(HUB_PROBLEM_CODES), message: text, since: text }))),
});

export type HubAnswer = v.InferOutput<typeof hubAnswer>;

const noticeAnswer = v.object({
  code: v.picklist(NOTICE_CODES),
  severity: v.picklist(['error', 'warning']),
  appliance: textOrNull,
  message: text,
  what_to_do: text,
  since: text,
});

const conditionAnswer = v.object({
  code: v.picklist([...HUB_CONDITION_CODES, ...APPLIANCE_CONDITION_CODES]),
  severity: v.picklist(SEVERITIES),
  appliance: textOrNull,
  message: text,
  what_to_do: text,
  since: textOrNull,
  until: textOrNull,
});
export type ConditionAnswer = v.InferOutput<typeof conditionAnswer>;

export const statusAnswer = v.object({
  hub: hubAnswer,
  appliances: v.array(applianceAnswer),
  conditions: v.array(conditionAnswer),
  notices: v.array(noticeAnswer),
});
export type StatusAnswer = v.InferOutput<typeof statusAnswer>;

const certificate = { certificate: text, fingerprint: text };

export const authorityAnswer = v.object({
  ...certificate,
  old: left(v.object({ ...certificate, until: textOrNull })),
});

/** An appliance's credentials, shown once. */
export const credentialsAnswer = v.object({
  name: text,
  client_id: text,
  client_secret: text,
  token_endpoint: text,
  ca_fingerprint: text,
});
export type CredentialsAnswer = v.InferOutput<typeof credentialsAnswer>;

const registrationPlace = { registration_endpoint: text, ca_fingerprint: text };

/** An initial access token, shown once. */
export const inviteAnswer = v.object({
  token: text,
  name: textOrNull,
  scope: textOrNull,
  expires_in: number,
  ...registrationPlace,
});
export type InviteAnswer = v.InferOutput<typeof inviteAnswer>;

export const registrationAnswer = v.object({ open_for: number, ...registrationPlace });
export type OpenRegistrationAnswer = v.InferOutput<typeof registrationAnswer>;

/** `sign_in` is a one-time address that signs a browser in; good for `expires_in` seconds. */
export const setupCodeAnswer = v.object({ code: text, page: text, sign_in: text, expires_in: number });
export type SetupCodeAnswer = v.InferOutput<typeof setupCodeAnswer>;

/** An RFC 6749 token response; `scope` is left out where there is none. */
export const tokenAnswer = v.object({
  access_token: text,
  token_type: v.literal('Bearer'),
  expires_in: number,
  scope: left(text),
});

/** The line that last had something added comes first. */
export const historyAnswer = v.array(
  v.object({
    kind: v.picklist(HISTORY_KINDS),
    why: v.nullable(v.picklist([...FAILURE_REASONS, ...PROBLEM_CODES])),
    first: text,
    last: text,
    count: number,
  }),
);

/** The id of the pairing that was started. */
export const pairingAnswer = v.object({ pairing: text });

/** A line of the events of a pairing, as `latchkey pair --json` prints it. */
export const pairingEvent = v.variant('event', [
  v.object({ event: v.literal('connecting'), problem: textOrNull, expires_in: number }),
  v.object({
    event: v.literal('waiting'),
    authorize_url: text,
    short_url: left(text),
    expires_in: number,
    reason: left(v.picklist(['link_ended', 'address_changed'])),
    unconfirmed: left(v.array(v.object({ id: text, address: text }))),
  }),
  v.object({ event: v.literal('paired'), scope: textOrNull }),
  v.object({ event: v.literal('failed'), reason, message: text }),
]);
export type PairingEventMessage = v.InferOutput<typeof pairingEvent>;

export const roundAnswer = v.object({
  id: text,
  current: v.nullable(v.object({ pairing: text, appliance: text })),
  next: textOrNull,
  connected: v.array(text),
  leftOut: v.array(v.object({ name: text, pairing: textOrNull, reason: v.picklist(LEFT_OUT_REASONS) })),
  differentAccounts: v.array(v.object({ appliance: text, account: text })),
});

export const labelAnswer = v.object({ name: text, hub_name: text, link: text, by_address: textOrNull });

export const trialsAnswer = v.array(
  v.object({ hook: v.picklist(['command', 'webhook']), target: text, ok: v.boolean(), detail: text }),
);

export const storeKeyAnswer = v.object({
  leftovers: v.array(text),
  copy_problem: textOrNull,
  is_credential: v.boolean(),
});
export type StoreKeyAnswer = v.InferOutput<typeof storeKeyAnswer>;

export const backupAnswer = v.object({ copy: text, made: text, appliances: number, grants: number });

export const restoreAnswer = v.object({
  made: text,
  hub_id: text,
  restored: v.array(text),
  kept: v.array(text),
});
export type RestoreAnswer = v.InferOutput<typeof restoreAnswer>;

/** The id of the reload that was begun. */
export const reloadAnswer = v.object({ reload: text });

export const reloadOutcomeAnswer = v.variant('state', [
  v.object({ state: v.picklist(['under_way', 'done', 'unknown']) }),
  v.object({ state: v.literal('failed'), message: text }),
]);

/** Every answer that is not 2xx. */
export const failureAnswer = v.object({ code: text, message: text });
