import { DatabaseError } from 'pg';
import { Failure, messageOf } from '../../core/failure.ts';

/** SQLSTATE classes and codes after which the same may work a moment later (PostgreSQL, appendix A). */
const OUTAGES = [/^08/, /^53/, /^57P0[1-5]$/, /^25006$/];
/** A transaction that met another one, and may simply be repeated. */
const CONFLICTS = [/^40001$/, /^40P01$/];
/** A lock or an answer took too long. */
const TIMEOUTS = [/^55P03$/, /^57014$/];

/** Whether the database itself answered with an error, so that the transaction has not been committed. */
export function isServerError(error: unknown): error is DatabaseError {
  return error instanceof DatabaseError && error.severity !== 'FATAL' && error.severity !== 'PANIC';
}

/** Whether the database can't be used at the moment: it can't be reached, starts, stops, is full, or is a standby. */
export function isOutage(error: unknown): boolean {
  if (!(error instanceof DatabaseError)) return isConnectionError(error);
  return error.severity === 'FATAL' ? !isPermanent(error) : OUTAGES.some((code) => code.test(error.code ?? ''));
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
  return error instanceof DatabaseError && CONFLICTS.some((code) => code.test(error.code ?? ''));
}

export function isTimeout(error: unknown): boolean {
  return error instanceof DatabaseError && TIMEOUTS.some((code) => code.test(error.code ?? ''));
}

/** Whether two rows can't have the same name. */
export function isDuplicate(error: unknown): boolean {
  return error instanceof DatabaseError && error.code === '23505';
}

/** Whether only a person can change what is wrong: a password, a database that does not exist, or a missing right. */
function isPermanent(error: unknown): boolean {
  return error instanceof DatabaseError && /^(28|3D|42501)/.test(error.code ?? '');
}

/** Why a hub can't start with this database. @param database for people, such as `database home on db.example:5432` */
export function startFailure(error: unknown, database: string): Failure {
  if (error instanceof Failure) return error;
  const code = error instanceof DatabaseError ? (error.code ?? '') : '';
  const reason = messageOf(error);
  const advice = /^28/.test(code)
    ? 'check user and password in the URL of store.postgres_file, and pg_hba.conf of the server'
    : /^3D/.test(code)
      ? 'create the database, or correct its name in the URL of store.postgres_file'
      : code === '42501'
        ? 'make the user of the URL the owner of the database'
        : isCertificateError(error)
          ? 'name the CA of the server as sslrootcert in the URL of store.postgres_file, and the host as its certificate does'
          : null;
  if (advice !== null) {
    return new Failure('site_unusable', `the site's ${database} can't be used (${reason})`, {
      cause: error,
      includesCause: true,
      advice,
    });
  }
  return new Failure('site_away', `the site's ${database} can't be reached (${reason})`, {
    cause: error,
    includesCause: true,
  });
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

function isCertificateError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = 'code' in error ? String(error.code) : '';
  return (
    /CERT|SELF_SIGNED|UNABLE_TO_(GET|VERIFY)/.test(code) ||
    /does not support SSL|no pg_hba.conf entry/.test(error.message)
  );
}
