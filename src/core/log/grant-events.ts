import {
  connectionIfKnown,
  error,
  event,
  number,
  optional,
  repeatedProblemMembers,
  retryIn,
  text,
  whatToDo,
} from './table.ts';

const problem = text('code of the problem, as in `latchkey status --json`');
const failure = {
  connection: connectionIfKnown,
  problem,
  message: text('the problem, in words'),
  retry_in: optional(retryIn),
} as const;
const notice = {
  notice: text('code of the notice, see docs/notices.md'),
  appliance: optional(
    text('name of the appliance; null if it is about the hub, or about a connection with another name'),
  ),
  connection: optional(text('name of the connection; null if it is about no connection')),
  status: text('`raised`, `repeated` or `resolved`'),
} as const;
const hook = {
  hook: text('`command` or `webhook`'),
  target: text('the program, or the origin of the address'),
  error,
} as const;

/** Grants and their tokens. */
export const grantEvents = {
  token_refreshed: event(
    ['debug', 'info'],
    'The portal issued new tokens. At `info` only for the first refresh of a run and after a failure.',
    {
      connection: connectionIfKnown,
      expires_in: number('lifetime of the access token in seconds'),
      generation: number('how often the grant has changed so far'),
    },
  ),
  refresh_failed: event(['debug', 'warn'], 'A refresh failed; the hub keeps trying.', {
    ...failure,
    portal: optional(text('name of the portal, if the problem concerns all its connections')),
    ...repeatedProblemMembers,
  }),
  portal_available: event('info', 'A problem that concerned all connections of a portal is over.', {
    portal: optional(text('name of the portal')),
    problem,
    ...repeatedProblemMembers,
  }),
  answer_lost: event(
    ['debug', 'warn'],
    'The response to a refresh was lost, so the portal may have replaced the refresh token; the hub tries again.',
    failure,
  ),
  pairing_needed: event('error', 'The portal no longer accepts the grant: a person must log in again.', failure),
  refresh_interrupted: event(
    'warn',
    'A hub ended or lost its database during a refresh, so the outcome is unknown; the hub tries again.',
    failure,
  ),
  refresh_superseded: event('info', 'The response to a refresh was discarded: the grant had been replaced.', {
    connection: connectionIfKnown,
  }),
  refresh_crashed: event(
    ['debug', 'error'],
    'Internal error during a refresh; the hub tries again. Please report it.',
    {
      connection: connectionIfKnown,
      error,
    },
  ),
  access_token_rejected: event(
    ['debug', 'warn'],
    'An appliance reported that the portal rejects its access token. The hub replaces a reported token at most once a minute.',
    {
      connection: connectionIfKnown,
      generation: number('generation of the grant that the token is from'),
      retry_in: optional(retryIn),
    },
  ),
  grant_suspended: event('warn', 'The grant is from a portal other than the configured one; it is kept but not used.', {
    connection: connectionIfKnown,
    issued_by: text('origin of the portal that issued it'),
    issued_to: text('client_id that it was issued to'),
    portal: text('origin of the configured portal'),
    client_id: text('client_id of the configured portal'),
    what_to_do: whatToDo,
  }),
  daily_summary: event('info', 'Summary of the refreshes of the last 24 hours.', {
    connections: number('how many connections have a grant'),
    refreshed: number('how many refreshes succeeded'),
    failed: number('how many failed'),
  }),
};

/** The clock of the hub. */
export const clockEvents = {
  clock_confirmed: event('info', 'A source outside the hub has confirmed the time.', {
    source: text('`ntp` or `portal`'),
    true_time: text('the time, as in RFC 3339'),
    hub_clock_ahead: number("seconds that the hub's clock is ahead; negative if it is behind"),
  }),
  clock_wrong: event('warn', "The hub's clock is wrong; the hub still refreshes tokens. Set up NTP.", {
    hub_clock_ahead: number('seconds that it is ahead; negative if it is behind'),
  }),
  clock_set: event('warn', "The hub's clock was set.", {
    step: number('by how many seconds; negative if it was set back'),
    hub_time: text('the time it has now, as in RFC 3339'),
  }),
};

/** What needs a person's attention, see docs/notices.md. */
export const noticeEvents = {
  notice: event(
    ['info', 'warn', 'error'],
    'A notice was raised, repeated or resolved; the level is its severity, `info` if it is resolved.',
    {
      ...notice,
      severity: text('`warning` or `error`'),
      message: text('what is wrong, in words'),
      what_to_do: whatToDo,
    },
  ),
  notices_failed: event('error', 'Internal error while looking for notices. Please report it.', { error }),
  notices_not_stored: event('warn', 'The store cannot be written; a restart may report notices again.', { error }),
  notice_delivery_failed: event('warn', 'A hook did not accept a notice; the hub tries again.', {
    ...notice,
    ...hook,
    retry_in: retryIn,
  }),
  notice_dropped: event('warn', 'A hook did not accept a notice; the hub does not try again.', { ...notice, ...hook }),
  notice_queue_dropped: event('warn', 'Notices that waited for a hook were dropped.', {
    count: number('how many'),
    ...hook,
  }),
};
