import { DatabaseError } from 'pg';
import { Failure, messageOf } from '../../../core/failure.ts';

/** SQLSTATE classes and codes after which the same may work a moment later (PostgreSQL, appendix A). */
const OUTAGES = [/^53/, /^25006$/];
/** Those that end the connection. Servers translate the severity, so it may not be `FATAL`. */
const FATAL = [/^08/, /^28/, /^3D/, /^57P0[1-5]$/, /^25P0[34]$/, /^53300$/];
/** Those that only a person can change: a password, a database that does not exist, or a missing right. */
const PERMANENT = [/^28/, /^3D/, /^42501$/];
/** What to do about a pooler between hub and server. */
export const POOLER_ADVICE =
  'name the server itself in the URL of store.postgres_file: a pooler such as PgBouncer breaks notifications and locks';
/** What poolers say that do not pass on the settings of a session. */
const POOLER = /unsupported startup parameter/;
/**
 * A transaction that met another one, and may simply be repeated: a serialization failure, a deadlock, or a row that
 * was there when the transaction looked for it, and was removed before one that refers to it was written.
 */
const CONFLICTS = [/^40001$/, /^40P01$/, /^23503$/];
/** A lock or an answer took too long. */
const TIMEOUTS = [/^55P03$/, /^57014$/];

/** Whether the database itself answered with an error, so that the transaction has not been committed. */
export function isServerError(error: unknown): error is DatabaseError {
  return error instanceof DatabaseError && !isFatal(error);
}

/** Whether the server has ended the connection: a commit may have been completed before. */
function isFatal(error: DatabaseError): boolean {
  return error.severity === 'FATAL' || error.severity === 'PANIC' || matches(error, FATAL);
}

function matches(error: DatabaseError, codes: readonly RegExp[]): boolean {
  return codes.some((code) => code.test(error.code ?? ''));
}

/** Whether the database can't be used at the moment: it can't be reached, starts, stops, is full, or is a standby. */
export function isOutage(error: unknown): boolean {
  if (!(error instanceof DatabaseError)) return isConnectionError(error);
  return isFatal(error) ? !matches(error, PERMANENT) : matches(error, OUTAGES);
}

/** Errors of `pg`, of TLS and of sockets. */
function isConnectionError(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof Failure) return false;
  return (
    ('code' in error && typeof error.code === 'string') ||
    /timeout|terminated|closed|ended|queryable|SSL/i.test(error.message)
  );
}

/** Whether a transaction may be repeated at once. */
export function isConflict(error: unknown): boolean {
  return error instanceof DatabaseError && matches(error, CONFLICTS);
}

export function isTimeout(error: unknown): boolean {
  return error instanceof DatabaseError && matches(error, TIMEOUTS);
}

/** Whether two rows can't have the same name. */
export function isDuplicate(error: unknown): boolean {
  return error instanceof DatabaseError && error.code === '23505';
}

/** Why a hub can't start with this database. @param database for people, such as `database home on db.example:5432` */
export function startFailure(error: unknown, database: string): Failure {
  if (error instanceof Failure) return error;
  const reason = messageOf(error);
  const options = { cause: error, includesCause: true };
  const advice = adviceFor(error);
  if (advice !== null) {
    return new Failure('database_unusable', `the site's ${database} can't be used (${reason})`, { ...options, advice });
  }
  if (isClockError(error)) {
    const advice = "check the clock of this hub and the dates of the server's certificate";
    return new Failure('database_unavailable', `the site's ${database} can't be reached (${reason})`, {
      ...options,
      advice,
    });
  }
  const mayPass = isOutage(error) || isTimeout(error) || isConflict(error) || !(error instanceof DatabaseError);
  return mayPass
    ? new Failure('database_unavailable', `the site's ${database} can't be reached (${reason})`, options)
    : new Failure('database_unusable', `the site's ${database} reports an error (${reason})`, options);
}

/** What a person has to do; null if nothing is known. */
function adviceFor(error: unknown): string | null {
  const code = error instanceof DatabaseError ? (error.code ?? '') : '';
  if (POOLER.test(messageOf(error))) return POOLER_ADVICE;
  if (/^28/.test(code) || isPasswordMissing(error))
    return 'check user and password in the URL of store.postgres_file, and pg_hba.conf of the server';
  if (/^3D/.test(code)) return 'create the database, or correct its name in the URL of store.postgres_file';
  if (code === '42501') return 'make the user of the URL the owner of the database';
  if (isTlsRefusal(error)) return 'switch TLS on in the server (ssl = on, with a certificate and its key)';
  if (isCertificateError(error)) {
    return 'name the CA of the server as sslrootcert in the URL of store.postgres_file, and the host as its certificate does';
  }
  return null;
}

/** An error as a failure of a read or a write. */
export function storeFailure(error: unknown, kind: 'store_unwritable' | 'store_unreadable', database: string): Failure {
  if (error instanceof Failure) return error;
  const what = isOutage(error) ? "can't be reached" : 'reports an error';
  return new Failure(kind, `the site's ${database} ${what} (${messageOf(error)})`, {
    cause: error,
    includesCause: true,
  });
}

function isTlsRefusal(error: unknown): boolean {
  return error instanceof Error && /does not support SSL/.test(error.message);
}

function isCertificateError(error: unknown): boolean {
  return /CERT|SELF_SIGNED|UNABLE_TO_(GET|VERIFY)/.test(codeOf(error)) && !isClockError(error);
}

/** A hub without a clock of its own may see this until it has the time from the network. */
function isClockError(error: unknown): boolean {
  return /^CERT_(NOT_YET_VALID|HAS_EXPIRED)$/.test(codeOf(error));
}

/** What `pg` says if the server asks for a password and the URL has none. */
function isPasswordMissing(error: unknown): boolean {
  return error instanceof Error && /client password must be a string/.test(error.message);
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
