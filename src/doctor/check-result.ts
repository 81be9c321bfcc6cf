/** How a check ended: `warn` is what may become a fault, or what could not be looked at. */
type CheckStatus = 'ok' | 'warn' | 'fail';

/** What a check found, in one line that says what to do next where something is to be done. */
export interface NamedCheckResult {
  /** Of the check, and what of: `clock`, `appliance.wallbox`. */
  readonly name: string;
  readonly result: CheckStatus;
  readonly detail: string;
}

/** What a check says of itself; its name is added by who runs it, before one that begins with a dot. */
export type CheckResult = Omit<NamedCheckResult, 'name'> & { readonly name?: string };

/** All is well. */
export function ok(detail: string, name?: string): CheckResult {
  return createResult('ok', detail, name);
}

/** Something that may become a fault, or that could not be looked at. */
export function warn(detail: string, name?: string): CheckResult {
  return createResult('warn', detail, name);
}

/** A fault. */
export function fail(detail: string, name?: string): CheckResult {
  return createResult('fail', detail, name);
}

/** What a check finds if the configuration is wrong where it says what to look at. @param meanwhile what is known all the same */
export function configurationInvalid(what: string, meanwhile = ''): CheckResult {
  return warn(`${what} could not be looked at: see to the configuration first${meanwhile}`);
}

function createResult(result: CheckStatus, detail: string, name: string | undefined): CheckResult {
  return { result, detail, ...(name === undefined ? {} : { name }) };
}

/** What is said where a user's rights were not enough to look, and why. */
export function permissionDenied(what: string): CheckResult {
  return warn(`${what} could not be looked at, because this user may not: run it with sudo`);
}
