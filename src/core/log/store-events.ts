import {
  appliance,
  connection,
  connectionIfKnown,
  error,
  event,
  flag,
  number,
  optional,
  repeatedProblemMembers,
  text,
  whatToDo,
} from './table.ts';

const commitSummaryMembers = {
  commits: number('how many commits this is about: those of the last 15 minutes, and at least the last 8'),
  slow: number('how many of them took longer than a second'),
  median: number('the median of their durations, in seconds'),
  slowest_tenth: number('what the slowest tenth of them took at least (the 90th percentile), in seconds'),
  longest: number('the longest duration, in seconds'),
} as const;

/** The store, its key, its snapshots and backups. */
export const storeEvents = {
  store_unwritable: event(
    ['debug', 'error'],
    'The store could not be written: the hub serves from memory and keeps trying. Check the disk.',
    { connection: connectionIfKnown, error, ...repeatedProblemMembers },
  ),
  store_writable: event('info', 'The store can be written again.', repeatedProblemMembers),
  store_slow: event(
    'warn',
    'Most commits of the store take longer than a second, as on an SD card that is about to fail. Make a backup, and replace the card.',
    { ...commitSummaryMembers, duration: number('seconds since the first slow commit') },
  ),
  store_volatile: event(
    'warn',
    'The state directory is in memory, or on an overlay file system whose changes are: nothing that the hub stores outlives a reboot.',
    { detail: text('where it is') },
  ),
  store_no_longer_slow: event('info', 'Most commits of the store take less than a second again.', commitSummaryMembers),
  store_reopen_failed: event(['debug', 'warn'], 'The store could not be reopened for writing; the hub keeps trying.', {
    error,
  }),
  waiting_for_database: event(
    'warn',
    'The hub cannot start, because the database of its site cannot be used. It keeps trying.',
    { error },
  ),
  database_unavailable: event(
    ['debug', 'warn'],
    'The database of the site cannot be used: the hub issues the tokens that it has, and starts no refresh. It keeps trying.',
    { error },
  ),
  database_available: event('info', 'The database of the site can be used again.', {
    duration: number('seconds for which it could not be used'),
  }),
  site_cleanup_failed: event(
    'warn',
    'Old entries of the database of the site could not be deleted; the hub tries again in an hour.',
    {
      error,
    },
  ),
  declaration_not_stored: event('warn', 'The store cannot be written; what is declared is served from memory.', {
    what: text('the appliance or connection'),
  }),
  store_recovered: event('error', 'The store was damaged or missing, and has been rebuilt. See docs/state.md.', {
    detail: text('what was recovered from what, in words'),
  }),
  grant_damaged: event('error', 'The grant of a connection is damaged in the store. Pair the connection again.', {
    connection,
  }),
  appliance_damaged: event(
    'error',
    'The entry of an appliance in the store is damaged, or something other than the hub changed it.',
    {
      appliance,
      what_to_do: whatToDo,
    },
  ),
  connection_damaged: event(
    'error',
    'The entry of a connection in the store is damaged, or something other than the hub changed it; nothing is issued for it.',
    {
      connection,
      what_to_do: whatToDo,
    },
  ),
  session_discarded: event(
    'error',
    'Something other than the hub changed a session in the store; its refresh token is no longer valid.',
    {
      appliance,
    },
  ),
  invites_discarded: event(
    'error',
    'Something other than the hub changed an invite in the store; it is no longer valid. Create another.',
  ),
  snapshot_written: event('info', 'A snapshot of the store was written.', {
    file: text('path of the snapshot'),
  }),
  snapshot_failed: event('warn', 'The snapshot of the store could not be written.', { error }),
  snapshot_schedule: event('debug', 'A message from the scheduler of the nightly snapshot.', {
    message: text('the message'),
  }),
  store_key_rotated: event('warn', 'The store is sealed with a new key.', {
    what_to_do: optional(whatToDo),
    snapshot_error: optional(text('why no snapshot was written with the new key, in words')),
  }),
  store_key_pending: event(
    'warn',
    'The store is sealed with the credential `store.key.next`, which has not replaced `store.key` yet.',
    {
      what_to_do: whatToDo,
    },
  ),
  store_key_install_failed: event(
    'error',
    'The new store key could not replace the old file; the next start tries again.',
    {
      error,
    },
  ),
  backup_made: event('info', 'A backup was made.', {
    appliances: number('how many appliances it contains'),
    grants: number('how many grants it contains'),
  }),
  backup_restored: event('warn', 'A backup was restored. Never run two hubs restored from the same backup.', {
    made: text('when the backup was made'),
    restored: text('the connections whose grant is from the backup, separated by commas'),
    kept: text('the connections whose newer grant was kept, separated by commas'),
  }),
  site_restored: event(
    'warn',
    'Another hub of the site has restored a backup, or this one could not learn in time that it has: the hub starts again, in the same process.',
  ),
  site_news_not_applied: event(
    ['debug', 'error'],
    'What other hubs of the site have changed could not be taken over; the hub soon reads everything again.',
    {
      part: text(
        'what was affected: `registry`, `sessions`, `registrations`, `access`, `notices`, `grants`, `pairings` or `hub`',
      ),
      error,
    },
  ),
  history_unreadable: event('warn', 'The history of a connection could not be read.', { error }),
  history_write_failed: event(['debug', 'warn'], 'The history could not be written; the hub keeps trying.', {
    error,
  }),
  usage_unreadable: event('warn', 'How many tokens each appliance got could not be read; the hub counts anew.', {
    error,
  }),
  usage_of_others_unreadable: event(
    'debug',
    'How many tokens the other hubs of the site have issued could not be read; the hub tries again later.',
    { error },
  ),
  usage_write_failed: event(
    'warn',
    'The hub stopped, and how many tokens each appliance got in the last hours could not be written.',
    { error },
  ),
};

/** The certificate of the hub, and its CA. */
export const certificateEvents = {
  certificate_renewed: event(
    'info',
    'The files of `lan.certificate_file` have changed, and the hub serves the new certificate.',
    {
      expires_at: text('when it expires, as in RFC 3339'),
    },
  ),
  certificate_rejected: event(
    'warn',
    'The files of `lan.certificate_file` have changed and cannot be used; the old certificate stays.',
    {
      error,
    },
  ),
  certificate_anchor_changed: event(
    'warn',
    'The renewed certificate has another root: appliances must trust or pin the new one.',
    {
      fingerprint: text('SHA-256 fingerprint of the new root'),
    },
  ),
  certificate_chain_missing: event('warn', 'The file of `lan.certificate_file` has a single certificate.', {
    what_to_do: whatToDo,
  }),
  certificate_root_missing: event('warn', 'The file of `lan.certificate_file` does not end with a self-signed root.', {
    what_to_do: whatToDo,
  }),
  certificate_expiring: event('warn', 'The certificate of `lan.certificate_file` expires soon. Renew it.', {
    expires_at: text('when it expires, as in RFC 3339'),
    days_left: number('how many whole days are left'),
  }),
  certificate_expired: event(
    ['warn', 'error'],
    'The certificate of `lan.certificate_file` has expired. Renew it; at level `warn`, check the clock first.',
    {
      expires_at: text('when it expired, as in RFC 3339'),
      clock_confirmed: flag("whether the time is confirmed; if not, the hub's clock may be wrong instead"),
    },
  ),
  certificate_names_missing: event('warn', 'The certificate is not valid for all names and addresses of the hub.', {
    names: text('the names and addresses that are missing, separated by commas'),
    what_to_do: whatToDo,
  }),
  certificate_issue_failed: event('error', 'The CA of the hub could not issue a certificate; the old one stays.', {
    error,
  }),
  certificate_not_stored: event('debug', 'The issued certificate could not be stored; the next start issues another.', {
    error,
  }),
  ca_rotated: event(
    'warn',
    'The hub has a new CA. Appliances must trust it before the hub stops serving the old one.',
    {
      fingerprint: text('SHA-256 fingerprint of the new CA'),
      old_fingerprint: text('SHA-256 fingerprint of the old CA'),
      old_until: optional(text('until when the old CA is kept, as in RFC 3339')),
    },
  ),
  old_ca_removed: event('warn', 'The old CA is no longer served.', { by: text('`request` or `time`') }),
  old_ca_removal_failed: event('debug', 'The removal of the old CA could not be stored; the hub keeps trying.', {
    error,
  }),
};
