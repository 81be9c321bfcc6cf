/** The result of a check: `warn` is something that may become a failure, or that could not be checked. */
type CheckStatus = 'ok' | 'warn' | 'fail';

/** The named result of a check: one line, which says what to do if something must be done. */
export interface NamedCheckResult {
  /** The check, and what it checked if that is more than one thing: `clock`, `appliance.wallbox`. */
  readonly name: string;
  readonly result: CheckStatus;
  readonly detail: string;
}

/** The result of a check. The caller adds the check's name, before a `name` that begins with a dot. */
export type CheckResult = Omit<NamedCheckResult, 'name'> & { readonly name?: string };

/** What a check has found: one result, or several; none if there is nothing to check. */
export type CheckResults = CheckResult | readonly CheckResult[];

/** A result without a problem. */
export function ok(detail: string, name?: string): CheckResult {
  return createResult('ok', detail, name);
}

/** A result that may become a failure, or something that could not be checked. */
export function warn(detail: string, name?: string): CheckResult {
  return createResult('warn', detail, name);
}

/** A failed check. */
export function fail(detail: string, name?: string): CheckResult {
  return createResult('fail', detail, name);
}

/**
 * The result if a check is impossible because the configuration is invalid.
 * @param addition what is known nevertheless
 */
export function configurationInvalid(subject: string, addition = ''): CheckResult {
  return warn(`${subject} could not be checked: fix the configuration first${addition}`);
}

function createResult(result: CheckStatus, detail: string, name: string | undefined): CheckResult {
  return { result, detail, ...(name === undefined ? {} : { name }) };
}

/** The result if a check is impossible because this user has no permission. */
export function permissionDenied(subject: string): CheckResult {
  return warn(`${subject} could not be checked, because this user has no permission: run this command with sudo`);
}
