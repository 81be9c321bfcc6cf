import { InvalidKeyFailure } from '../../configuration/validation.ts';
import { CLOCK_WARNING_OFFSET } from '../../core/clock.ts';
import { Failure, messageOf } from '../../core/failure.ts';
import type { DatabaseInspection } from '../../store/postgres/database/inspect-database.ts';
import { readDatabaseAddress } from '../../store/postgres/database/postgres-url.ts';
import {
  type CheckResult,
  type CheckResults,
  configurationInvalid,
  fail,
  ok,
  permissionDenied,
  warn,
} from '../check-result.ts';
import { type DoctorContext, isTestMode, PLACEHOLDER_DATABASE } from '../context.ts';

/**
 * Checks the database of a site: whether it can be reached and used, its schema, its clock, and how safe commits are.
 */
export async function checkDatabase(context: DoctorContext): Promise<CheckResults> {
  const { site } = context.configuration;
  if (isTestMode(context.hub)) return [];
  if (site === null) {
    // A hub on SQLite has no database to check, whatever else is wrong in its configuration.
    const isWrong = context.configurationFailures.some(
      (failure) => failure instanceof InvalidKeyFailure && /^store(\.|$)/.test(failure.key),
    );
    return isWrong ? [configurationInvalid('the database of the site')] : [];
  }
  if (site.url.database === PLACEHOLDER_DATABASE) return permissionDenied('the database of the site');
  const { inspectDatabase } = await import('../../store/postgres/database/inspect-database.ts');
  try {
    const found = await inspectDatabase(await readDatabaseAddress(site.url), () => context.wall());
    return [checkServer(site.url.description, found), ...checkSchema(found), checkClockOf(found), checkCommits(found)];
  } catch (error) {
    const needsAdvice =
      error instanceof Failure && error.code === 'database_unavailable' && error.message === error.summary;
    return fail(
      `${messageOf(error)}${needsAdvice ? ': check that the server runs, and the network between it and the hub' : ''}`,
    );
  }
}

function checkServer(
  description: string,
  { serverVersion, isTooOld, isStandby, tls }: DatabaseInspection,
): CheckResult {
  const server = `${description}: PostgreSQL ${serverVersion}, ${tls ?? 'without TLS, on this machine'}`;
  if (isTooOld) return fail(`${server}; a site needs version 13 or newer: update the server`);
  if (isStandby) {
    return fail(
      `${server}; it is a standby, which can't be written: promote it, or let the URL in the file of store.postgres_file lead to the primary server`,
    );
  }
  return ok(server);
}

function checkSchema({ hasRights, schema }: DatabaseInspection): CheckResult[] {
  const rights = '.rights';
  if (!hasRights)
    return [fail('the user of the URL may not use the tables of the site: make it the owner of the database', rights)];
  const found =
    schema === null
      ? 'there are no tables yet: the first hub creates them'
      : `the schema has version ${schema.version}`;
  return [
    ok('the user of the URL has the rights that a hub needs', rights),
    schema?.isKnown === false
      ? fail(`${found}, which this version does not know: install the version of the other hubs`, '.schema')
      : ok(found, '.schema'),
  ];
}

function checkClockOf({ clockAheadMs }: DatabaseInspection): CheckResult {
  const seconds = Math.round(Math.abs(clockAheadMs) / 1000);
  const text = `the clock of the database is ${seconds} s ${clockAheadMs > 0 ? 'ahead of' : 'behind'} this machine's`;
  if (Math.abs(clockAheadMs) <= CLOCK_WARNING_OFFSET)
    return ok('the clock of the database agrees with this machine', '.clock');
  return warn(
    `${text}: the hubs measure ages by the database, but certificates and the log by their own clocks; set both by NTP`,
    '.clock',
  );
}

function checkCommits({ commits }: DatabaseInspection): CheckResult {
  switch (commits) {
    case 'at_standby':
      return ok('commits are on the disk of the server and of a standby', '.commits');
    case 'durable':
      return ok('commits are on the disk of the server; there is no synchronous standby', '.commits');
    case 'not_durable':
      return warn(
        'commits may be lost if the server loses power (synchronous_commit or fsync is off), and then people may have to log in again: turn both on',
        '.commits',
      );
  }
}
